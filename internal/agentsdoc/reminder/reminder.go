// Package reminder writes the reminders of the AGENTS.md plugin: short messages that a host puts beside the
// conversation, as blocks of their own. The methods of [Style] write the three types.
//
// A reminder names files and directories whose names anyone can choose, and may hold text of files. None of that can
// end a line, close the tag, open another, or forge a line of package chain's: paths are printed by sdk.PlainName
// or, by [Style], [chain.PrintPlainPath], and texts are escaped by [chain.Escaper] and [Escape]. A host that
// renders them by [sdk.Reminder] escapes what still reads like its tag once more.
package reminder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// Type says what a reminder is about. Models and hosts look for these words.
type Type string

// The types.
const (
	ResolvePaths Type = "agents.resolve.paths" // names instruction files of directories that a tool touched
	FilesChanged Type = "agents.changed"       // says which loaded files have changed
	ResumeDiff   Type = "session.resume.diff"  // says what has changed since a session was last active
)

// Message is one reminder. The zero value is empty.
type Message struct {
	Type Type
	Text string // the content of the tag, without a newline at its end
}

// Empty reports whether there is nothing to say.
func (m Message) Empty() bool { return m.Text == "" }

// Tagged is the message as hosts put it before the model ([sdk.Reminder]); empty for an empty message.
func (m Message) Tagged() string {
	if m.Empty() {
		return ""
	}
	return sdk.Reminder(&phases.MergedReminder{Type: string(m.Type), Text: m.Text})
}

// Escape makes a text that [chain.Escaper] has escaped fit for a reminder's tag, whatever host puts it there. The
// second result counts the places.
func Escape(text string) (string, int) {
	return sdk.Escaper{Tags: []string{sdk.ReminderTag}}.Escape(text)
}

// Style says how paths are printed. The zero value is the default preset's.
type Style struct {
	// Plain replaces in paths only what could end a line or a tag, as the users of other tools know them.
	Plain bool
	// Unchanged makes a resumed session's reminder name also what has not changed.
	Unchanged bool
}

// StyleOf is the style of a preset, by the layout of its text.
func StyleOf(l chain.Layout) Style {
	return Style{Plain: l != chain.LayoutDelimited && l != "", Unchanged: l == chain.LayoutTitled}
}

// Path prints a path.
func (s Style) Path(path string) string {
	if s.Plain {
		return chain.PrintPlainPath(path)
	}
	return sdk.PlainName(path)
}

// Change says why a file is named.
type Change string

// The changes.
const (
	New     Change = "new"
	Updated Change = "updated"
	Removed Change = "removed"
)

// File is a file that a reminder names.
type File struct {
	Path    string // absolute and exact
	MTimeMs int64
	Change  Change
	// Block is the delivered text of the file: package chain's lines and the escaped text between them, ended by LF. It
	// is empty if only the path is given. [Escape] was not applied.
	Block string
}

// The lines around the list of [Style.ResolvePaths].
const (
	resolveHead = "More instruction files apply to this path:"
	resolveRead = "Read them, and follow them, before you change files in their directories or below."
	resolveText = "Their text follows. Follow it when you change files in their directories or below."
	resolveRest = "The text of some follows. Read the others, and follow all of them, before you change files in their directories or below."
	resolveNew  = "What updated files said before does not apply any more."
)

// ResolvePaths names the instruction files that apply to what a tool touched, in the given order, with their text if
// there is any, and those given before that are gone. Without files it is empty.
func (s Style) ResolvePaths(files []File) Message {
	if len(files) == 0 {
		return Message{}
	}
	present, lines, gone := split(files, func(f File) string {
		if f.Change == Updated {
			return s.changedLine(f)
		}
		return s.line(f)
	}, s.goneLine)
	if len(present) > 0 {
		lines = slices.Concat([]string{resolveHead}, lines, []string{ending(present, resolveRead, resolveText, resolveRest)})
	}
	if slices.ContainsFunc(present, func(f File) bool { return f.Change == Updated }) {
		lines = append(lines, resolveNew)
	}
	if len(gone) > 0 {
		lines = slices.Concat(lines, []string{changedHead}, gone, []string{changedGone})
	}
	return Message{Type: ResolvePaths, Text: withBlocks(lines, files)}
}

// The lines around the list of [Style.FilesChanged].
const (
	changedHead = "Instruction files that were loaded have changed:"
	changedRead = "Read them again, and go by what they say now, before you change files in their directories or below."
	changedText = "Their present text follows, and stands in for the one that was loaded."
	changedRest = "The present text of some follows. Read the others again, and go by what they say now."
	changedGone = "What was removed does not apply any more."
)

// FilesChanged says which loaded files have changed, are new, or are gone, with their text if there is any. Without
// files it is empty.
func (s Style) FilesChanged(files []File) Message {
	if len(files) == 0 {
		return Message{}
	}
	present, lines, gone := split(files, s.changedLine, s.goneLine)
	lines = slices.Concat([]string{changedHead}, lines, gone)
	if len(present) > 0 {
		lines = append(lines, ending(present, changedRead, changedText, changedRest))
	}
	if len(gone) > 0 {
		lines = append(lines, changedGone)
	}
	return Message{Type: FilesChanged, Text: withBlocks(lines, files)}
}

// split returns the files that are not removed, a line for each of them, and a line for each other one.
func split(files []File, line, goneLine func(File) string) (present []File, lines, gone []string) {
	for _, f := range files {
		if f.Change == Removed {
			gone = append(gone, goneLine(f))
			continue
		}
		present, lines = append(present, f), append(lines, line(f))
	}
	return present, lines, gone
}

func (s Style) line(f File) string { return fmt.Sprintf("- %s (mtime: %d)", s.Path(f.Path), f.MTimeMs) }

func (s Style) changedLine(f File) string {
	return fmt.Sprintf("- %s (%s, mtime: %d)", s.Path(f.Path), f.Change, f.MTimeMs)
}

func (s Style) goneLine(f File) string { return fmt.Sprintf("- %s (%s)", s.Path(f.Path), Removed) }

// ending picks the sentence for files without text, with all their text, or some.
func ending(files []File, none, all, some string) string {
	texts := 0
	for _, f := range files {
		if f.Block != "" {
			texts++
		}
	}
	switch texts {
	case 0:
		return none
	case len(files):
		return all
	}
	return some
}

func withBlocks(lines []string, files []File) string {
	for _, f := range files {
		if f.Block != "" {
			text, _ := Escape(f.Block)
			lines = append(lines, strings.TrimSuffix(text, "\n"))
		}
	}
	return strings.Join(lines, "\n")
}

// MaxDetails is how many lines of one group [Style.ResumeDiff] has. It counts the rest in one.
const MaxDetails = 3

// Resumed compares a session with what it was. Lists are in the order of the text.
type Resumed struct {
	// Dir and Root are absolute paths, exact.
	DirFrom, DirTo         string
	RootFrom, RootTo       string
	MarkersFrom, MarkersTo []string
	Look, Gone             []File // in scope and not seen by the model in this version; and no longer in scope
	Moved                  bool   // the session did not pause, but continues in another directory
}

// The lines of [Style.ResumeDiff].
const (
	resumeHead  = "The session was resumed, and its context has changed:"
	movedHead   = "The context of the session has changed:"
	resumeLook  = "Look again at the instruction files in scope before you go on:"
	resumeAgain = "Look again at the instruction files in scope before you go on."
	resumeGone  = "No longer in scope:"
)

// ResumeDiff says what has changed in a resumed session. It is empty if nothing has: files may change again before the
// model reads it.
func (s Style) ResumeDiff(r Resumed) Message {
	var lines []string
	changes := len(r.Look) + len(r.Gone)
	for _, d := range []struct {
		what, from, to string
		changed        bool // by the exact values: two paths may print alike
	}{
		{"cwd", cmp.Or(s.Path(r.DirFrom), "none"), cmp.Or(s.Path(r.DirTo), "none"), r.DirFrom != r.DirTo},
		{"root", cmp.Or(s.Path(r.RootFrom), "none"), cmp.Or(s.Path(r.RootTo), "none"), r.RootFrom != r.RootTo},
		{"markers", printList(r.MarkersFrom), printList(r.MarkersTo), !slices.Equal(r.MarkersFrom, r.MarkersTo)},
	} {
		if d.changed {
			changes++
		}
		if d.changed || s.Unchanged {
			lines = append(lines, fmt.Sprintf("- %s: %s -> %s", d.what, d.from, d.to))
		}
	}
	head := resumeHead
	if changes == 0 {
		return Message{}
	} else if r.Moved {
		head = movedHead
	}
	lines = append([]string{head}, lines...)
	if len(r.Look) > 0 {
		lines = append(append(lines, resumeLook), group(r.Look, s.line)...)
	} else {
		lines = append(lines, resumeAgain)
	}
	if len(r.Gone) > 0 {
		lines = append(append(lines, resumeGone), group(r.Gone, func(f File) string { return "- " + s.Path(f.Path) })...)
	}
	return Message{Type: ResumeDiff, Text: strings.Join(lines, "\n")}
}

func group(files []File, line func(File) string) []string {
	var lines []string
	for i, f := range files {
		if i == MaxDetails {
			return append(lines, fmt.Sprintf("- and %d more", len(files)-i))
		}
		lines = append(lines, line(f))
	}
	return lines
}

// printList prints a list of names as JSON on one line, with < and > escaped.
func printList(names []string) string {
	clean := []string{}
	for _, n := range names {
		clean = append(clean, sdk.PlainName(sdk.OneLine(n)))
	}
	out, _ := json.Marshal(clean) //nolint:errchkjson // strings always can
	return string(out)
}
