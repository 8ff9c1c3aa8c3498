package reminder

import (
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// Type says what a reminder is about. The words are part of what models and
// hosts are told to look for.
type Type string

// The catalog.
const (
	// ResolvePaths names instruction files of folders that a tool touched.
	ResolvePaths Type = "agents.resolve.paths"
	// FilesChanged says which of the files that were loaded are others now.
	FilesChanged Type = "agents.changed"
	// ResumeDiff says what differs from what a session was left with.
	ResumeDiff Type = "session.resume.diff"
	// OutputTrimmed says that a tool's output is not all there.
	OutputTrimmed Type = "tool.output.trimmed"
	// PermissionDecision says that a hook decided on a call.
	PermissionDecision Type = "permission.decision"
)

// Message is one reminder. The zero value says nothing.
type Message struct {
	Type Type
	// Text is what stands within the tag, without a newline at its end.
	Text string
}

// Empty reports whether there is nothing to say.
func (m Message) Empty() bool { return m.Text == "" }

// tagName is the element that reminders stand in.
const tagName = "system-reminder"

// Tagged is the message as it is put before the model; empty if it is.
func (m Message) Tagged() string {
	if m.Empty() {
		return ""
	}
	return "<" + tagName + ` type="` + string(m.Type) + "\">\n" + m.Text + "\n</" + tagName + ">"
}

// Style says how paths are printed. The zero value is the default preset's.
type Style struct {
	// Plain replaces in paths only what could end a line or a tag, so that they
	// look as the users of other tools know them.
	Plain bool
	// Unchanged makes a resumed session's reminder name also what is as it was.
	Unchanged bool
}

// StyleOf is the style of a preset, by the layout of its text.
func StyleOf(l option.Layout) Style {
	return Style{
		Plain:     l == option.LayoutJoined || l == option.LayoutTitled,
		Unchanged: l == option.LayoutTitled,
	}
}

// Path prints a path.
func (s Style) Path(path string) string {
	if s.Plain {
		return textrule.PrintPlainPath(path)
	}
	return textrule.PrintPath(path)
}

// name prints a word that others chose, so that it stays on its line, shows all
// that it is, and cannot hold a tag.
func name(word string) string {
	return textrule.PrintPlainPath(textrule.WithoutInvisible(strings.TrimSpace(word)))
}
