package merge

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// prepared is a text normalised, escaped, measured and framed. Admit makes it once, because admitted texts are merged
// several times. It is immutable.
type prepared struct {
	frame           text.Frame
	body            string
	whole           string // the body in its frame, uncut
	bodyChars, size int    // length of the body, and of whole
	blank           bool   // nothing of it is visible
	title           string // a section's heading; empty for its id
	forged          int    // headings of the compiler's own that were removed
}

func prepare(c phases.Contribution) *prepared {
	switch c := c.(type) {
	case *phases.PromptSection:
		p := &prepared{title: clean(c.Title)}
		known := sections.ForHooks(c.SectionID) != nil
		if !known && forgedTitle(p.title) {
			p.title = ""
			p.forged++
		}
		// The compiler's rows for hooks hold text of files and people under headings of their own, which stay.
		p.fill(c.Content, c.Frame, !known)
		return p
	case *phases.PromptContext:
		p := &prepared{}
		p.fill(c.Content, nil, true)
		return p
	}
	return nil
}

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

// guard escapes headings of the compiler's own, also those that only frame and body together make. A changed frame
// escapes its body again.
func (p *prepared) guard() {
	was := p.frame
	var n int
	p.frame, p.body, n = text.EscapeFragmentHeadings(p.frame, p.body, sections.ReadsLikeOne)
	p.forged += n
	if p.frame != was {
		p.body, _ = text.Escape(p.body, p.frame)
	}
}

func (p *prepared) guardFrame() {
	was := p.frame
	p.frame, _, _ = text.EscapeFragmentHeadings(was, p.body, sections.ReadsLikeOne)
	p.forged += len(p.frame.Open) + len(p.frame.Close) - len(was.Open) - len(was.Close)
	if p.frame != was {
		p.body, _ = text.Escape(p.body, p.frame)
	}
}

// forgedTitle reports whether a title, set as a heading, reads like one of the compiler's own, in any of its lines or
// joined into one.
func forgedTitle(title string) bool {
	if strings.IndexFunc(title, func(r rune) bool { return !plainInTitle(r) }) < 0 { // nothing is hidden in it
		return sections.TitleReadsLikeOne(title)
	}
	_, n := text.EscapeHeadings("## "+title+"\n## "+strings.Join(strings.Fields(title), " "), sections.ReadsLikeOne)
	return n > 0
}

// plainInTitle reports whether r is an ASCII letter or digit, a blank, or punctuation without meaning in Markdown.
func plainInTitle(r rune) bool {
	return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || strings.ContainsRune(" .,:;'/-_", r)
}

func clean(s string) string {
	s, _ = text.Escape(text.Normalize(s), text.Frame{})
	return s
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

//nolint:gochecknoglobals // immutable, and a cache of encoders by type of contribution
var (
	toolEncoder = sync.OnceValue(digest.EncoderOf[phases.Tool])
	encoders    sync.Map
)

// encode appends what is hashed of a contribution: its fields and its kind.
func encode(dst []byte, c phases.Contribution) ([]byte, error) {
	v := reflect.ValueOf(c).Elem()
	encoder, ok := encoders.Load(v.Type())
	if !ok {
		encoder, _ = encoders.LoadOrStore(v.Type(), digest.TaggedEncoder(v.Type(), "kind", string(phases.KindOf(c))))
	}
	return encoder.(func([]byte, reflect.Value) ([]byte, error))(dst, v) //nolint:forcetypeassert // stored above
}

func hashOf(buf []byte, c phases.Contribution, key []byte) (string, []byte, error) {
	need := 512 // names, ids, and what escaping adds
	switch c := c.(type) {
	case *phases.PromptSection:
		need += len(c.Content)
	case *phases.PromptContext:
		need += len(c.Content)
	}
	buf = slices.Grow(buf[:0], need)
	out, err := encode(buf, c)
	if err != nil {
		return "", buf, err
	}
	return digest.Hash(key, out), out, nil
}
