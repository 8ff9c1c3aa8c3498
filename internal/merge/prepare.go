package merge

import (
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// prepared is a text as far as it does not depend on what else there is:
// normalised, escaped, measured, and set into its frame. Admit makes it, because
// what was admitted is merged more than once: in a dispatch before the validators
// and at the end, and as a cached answer in each turn. It never changes.
type prepared struct {
	frame text.Frame
	body  string
	// whole is the body in its frame, uncut.
	whole string
	// bodyChars is the length of the body, size of everything.
	bodyChars, size int
	// blank says that there is nothing to see of it.
	blank bool
	// title is a section's heading, empty for its id; forged counts the headings of
	// the compiler's own that were taken out of title, frame and body.
	title  string
	forged int
}

// prepare makes what merging needs of a contribution's long text; nil for kinds
// that have none.
func prepare(c phases.Contribution) *prepared {
	switch c := c.(type) {
	case *phases.PromptSection:
		p := &prepared{title: clean(c.Title)}
		_, known := knownTitle(c.SectionID)
		if !known && forgedTitle(p.title) {
			p.title = ""
			p.forged++
		}
		// The rows that the compiler keeps for hooks hold the text of files and
		// people, under headings of their own: it stays as it was written.
		p.fill(c.Content, c.Frame, !known)
		return p
	case *phases.PromptContext:
		p := &prepared{}
		p.fill(c.Content, nil, true)
		return p
	}
	return nil
}

// fill prepares a text: normalise, escape, measure, render. Guarded text shows no
// heading of the compiler's own.
func (p *prepared) fill(content string, frame *phases.Frame, guarded bool) {
	if frame != nil {
		p.frame = text.Frame{Open: clean(frame.Open), Close: clean(frame.Close)}
	}
	p.body, _ = text.Escape(text.Normalize(content), p.frame)
	if guarded {
		p.guard()
	} else {
		p.guardFrame()
	}
	p.bodyChars = text.Chars(p.body)
	p.size = text.Size(p.frame, p.bodyChars)
	p.whole = text.Render(p.frame, p.body, "")
	p.blank = isBlank(p.body) && isBlank(p.frame.Open) && isBlank(p.frame.Close)
}

// guard escapes the headings of the compiler's own, also those that only frame and
// body together make. A frame that changed by it guards its body anew.
func (p *prepared) guard() {
	was := p.frame
	var n int
	p.frame, p.body, n = text.EscapeFragmentHeadings(p.frame, p.body, houseHeading)
	p.forged += n
	if p.frame != was {
		p.body, _ = text.Escape(p.body, p.frame)
	}
}

// guardFrame is guard for a body that stays as it was written: the frame is the plugin's
// own in any case.
func (p *prepared) guardFrame() {
	was := p.frame
	p.frame, _, _ = text.EscapeFragmentHeadings(was, p.body, houseHeading)
	p.forged += len(p.frame.Open) + len(p.frame.Close) - len(was.Open) - len(was.Close)
	if p.frame != was {
		p.body, _ = text.Escape(p.body, p.frame)
	}
}

// forgedTitle reports whether a title, set as a heading, shows one of the compiler's
// own: in any of its lines, or when they are made one.
func forgedTitle(title string) bool {
	if strings.IndexFunc(title, func(r rune) bool { return !plainInTitle(r) }) < 0 { // nothing is hidden in it
		return houseHeading(text.Letters(title))
	}
	_, n := text.EscapeHeadings("## "+title+"\n## "+strings.Join(strings.Fields(title), " "), houseHeading)
	return n > 0
}

// plainInTitle reports whether a character is what it seems to be: a letter or digit of
// ASCII, a blank, or punctuation without a meaning in Markdown.
func plainInTitle(r rune) bool {
	return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || strings.ContainsRune(" .,:;'/-_", r)
}

// clean normalises and escapes a text that has no frame of its own.
func clean(s string) string {
	s, _ = text.Escape(text.Normalize(s), text.Frame{})
	return s
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
