package thread

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/lenient"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// The frame of the section.
const (
	// Preamble is what it says before its tag.
	Preamble = "Below is the AGENTS.md document that is in effect for this thread's place in the tree of threads. " +
		"System, developer and explicit user messages take precedence over it."
	// FrameOpen opens it.
	FrameOpen = Preamble + "\n\n<AGENTS_MD>"
	// FrameClose closes it.
	FrameClose = "</AGENTS_MD>"
)

// rootLabel is the label of a workspace's root. A folder may have that name too;
// the document's id tells them apart.
const rootLabel = "root"

// hostMarker is the beginning of the line with which a host ends what it cut. It
// puts a backslash into a line of a text that looks like it. Escaping leaves only
// those with blanks before them.
const hostMarker = "[ truncated : kept"

// Rendering is a document as it goes into a prompt.
type Rendering struct {
	// Content is the text between the two halves of the frame. It is empty where
	// there is nothing to say, or no room to say it in.
	Content string
	// Cut says what is missing of it; nil where it is whole.
	Cut *phases.SelfCut
	// Diagnostics say what was done to the text.
	Diagnostics []phases.Diagnostic
}

// Frame returns what stands around the text.
func Frame() *phases.Frame { return &phases.Frame{Open: FrameOpen, Close: FrameClose} }

// Label names the place of a document for people: the names of its folders, or
// "root". It is fit for printing, whatever the folders are called.
func (d *Document) Label() string {
	if len(d.Path) == 0 {
		return rootLabel
	}
	return textrule.PrintPath(strings.Join(d.Path, " / "))
}

// Ref is the document as a source of a section: ID@VERSION is the very revision.
func (d *Document) Ref() phases.SourceRef {
	id := textrule.PrintPath(d.ID)
	if d.Version > 0 {
		id += "@" + strconv.FormatInt(d.Version, 10)
	}
	return phases.SourceRef{Kind: "document", ID: id, Label: d.Label()}
}

// Render makes the text of a document. With the frame and its newlines it has at
// most limit characters, and keeps to that when a host has escaped what looks like
// the host's own. A limit of 0 does not bound, as in [phases.Room]. It is the same
// for the same arguments.
func Render(d *Document, limit int) Rendering {
	text, _ := textrule.Form{Normal: true}.Text(d.Content)
	if textrule.IsBlank(text) {
		return Rendering{}
	}
	escaped, places := textrule.Escape(strings.TrimRight(text, "\n"))
	b := body{text: escaped, chars: utf8.RuneCountInString(escaped), total: utf8.RuneCountInString(text)}
	content, kept, whole := b.fit(roomOf(limit))
	r := Rendering{Content: content}
	if content == "" {
		r.remarkf(d, chain.CodeOmittedBudget, "%d characters; the budget is exhausted", b.total)
		return r
	}
	if hidden := textrule.FindHidden(text); hidden.Count > 0 {
		r.remarkf(d, chain.CodeHiddenUnicode, "characters that do not show: %d, the first in line %d", hidden.Count, hidden.Lines[0])
	}
	if places > 0 {
		r.remarkf(d, chain.CodeEscaped, "places that look like lines or tags of the prompt, and got a backslash: %d", places)
	}
	if !whole {
		r.remarkf(d, chain.CodeTruncated, "kept %d of %d characters", kept, b.total)
		r.Cut = &phases.SelfCut{Kept: utf8.RuneCountInString(content), Original: b.chars} // fit keeps it shorter
	}
	return r
}

// remarkf notes something about a document. It never holds text of it, so anyone may
// see it.
func (r *Rendering) remarkf(d *Document, code chain.Code, format string, args ...any) {
	r.Diagnostics = append(r.Diagnostics, phases.Diagnostic{
		Code: string(code), Severity: phases.Severity(code.Severity()), SafeForUser: true,
		Message: "document " + d.Label() + ": " + fmt.Sprintf(format, args...),
	})
}

// roomOf is what a limit of the whole leaves between the halves of the frame.
func roomOf(limit int) int {
	if limit == 0 {
		return math.MaxInt
	}
	return max(0, limit-utf8.RuneCountInString(FrameOpen)-utf8.RuneCountInString(FrameClose)-len("\n\n"))
}

// body is the escaped text of a document.
type body struct {
	text string
	// chars is its length, total that of the document, which is not escaped.
	chars, total int
}

// fit returns what of a body goes into room characters, and how many characters of
// the document that is. Where it is not whole it ends in the marker.
func (b *body) fit(room int) (content string, kept int, whole bool) {
	for left := room; ; {
		content, kept, whole = b.cut(left)
		over := utf8.RuneCountInString(content) + lenient.Lines(content, hostMarker) - room
		if over <= 0 || content == "" {
			return content, kept, whole
		}
		left -= over
	}
}

// cut is fit as far as the host adds nothing.
func (b *body) cut(room int) (content string, kept int, whole bool) {
	if b.chars <= room {
		return b.text, b.total, true
	}
	room -= len(marker(b.total, b.total)) + len("\n")
	piece := textrule.Cut(b.text, textrule.Extent{Bytes: math.MaxInt, Chars: room})
	if textrule.IsBlank(piece) {
		return "", 0, false
	}
	// In a piece, the places that need escaping are those that were escaped.
	_, inserted := textrule.Escape(piece)
	kept = utf8.RuneCountInString(piece) - inserted
	return piece + "\n" + marker(kept, b.total), kept, false
}

// marker ends a text that was cut.
func marker(kept, total int) string {
	return fmt.Sprintf("%s thread document, kept %d of %d characters]", textrule.TruncatedWord, kept, total)
}

// printable is a text without NUL, which nothing that goes to a host may hold.
func printable(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }
