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
}

// prepare makes what merging needs of a contribution's long text; nil for kinds
// that have none.
func prepare(c phases.Contribution) *prepared {
	switch c := c.(type) {
	case *phases.PromptSection:
		return prepareText(c.Content, c.Frame)
	case *phases.PromptContext:
		return prepareText(c.Content, nil)
	}
	return nil
}

// prepareText prepares a text: normalise, escape, measure, render.
func prepareText(content string, frame *phases.Frame) *prepared {
	p := &prepared{}
	if frame != nil {
		p.frame = text.Frame{Open: clean(frame.Open), Close: clean(frame.Close)}
	}
	p.body, _ = text.Escape(text.Normalize(content), p.frame)
	p.bodyChars = text.Chars(p.body)
	p.size = text.Size(p.frame, p.bodyChars)
	p.whole = text.Render(p.frame, p.body, "")
	p.blank = isBlank(p.body) && isBlank(p.frame.Open) && isBlank(p.frame.Close)
	return p
}

// clean normalises and escapes a text that has no frame of its own.
func clean(s string) string {
	s, _ = text.Escape(text.Normalize(s), text.Frame{})
	return s
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
