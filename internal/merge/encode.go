package merge

import (
	"strconv"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// appendUsual appends what the encoders do, without reflection, for a section or a context of texts and numbers
// alone. It returns false for any other contribution.
func appendUsual(dst []byte, c phases.Contribution) ([]byte, bool) {
	o := object{append(dst, '{'), true}
	switch c := c.(type) {
	case *phases.PromptSection:
		if len(c.Diagnostics)+len(c.SourceRefs) > 0 || c.Frame != nil || c.Cut != nil {
			return dst, false
		}
		o.head(&c.Common, c.Content, phases.KindPromptSection, c.MaxChars)
		o.text(`"placement":`, string(c.Placement))
		o.number(`"priority":`, c.Priority)
		o.member(`"section_id":`, c.SectionID)
		o.text(`"stability":`, string(c.Stability))
		o.text(`"title":`, c.Title)
	case *phases.PromptContext:
		if len(c.Diagnostics)+len(c.SourceRefs) > 0 || c.Render != nil {
			return dst, false
		}
		o.head(&c.Common, c.Content, phases.KindPromptContext, c.MaxChars)
		o.number(`"priority":`, c.Priority)
	default:
		return dst, false
	}
	return append(o.out, '}'), o.ok
}

// object is a JSON object that is being written, members in order; ok is false once a value has no form here.
type object struct {
	out []byte
	ok  bool
}

// head writes the members that come first in both.
func (o *object) head(c *phases.Common, content string, kind phases.Kind, maxChars int) {
	o.member(`"content":`, content)
	o.text(`"contribution_id":`, c.ContributionID)
	o.text(`"domain":`, c.Domain)
	o.member(`"kind":`, string(kind))
	o.number(`"max_chars":`, maxChars)
}

// text writes a member that is omitted when it is empty.
func (o *object) text(key, s string) {
	if s != "" {
		o.member(key, s)
	}
}

func (o *object) member(key, s string) {
	var err error
	o.key(key)
	o.out, err = digest.AppendString(o.out, s)
	o.ok = o.ok && err == nil
}

// number writes a member that is omitted when it is 0.
func (o *object) number(key string, n int) {
	const exact = 1 << 53 // larger ones are rounded
	if n != 0 {
		o.key(key)
		o.out = strconv.AppendInt(o.out, int64(n), 10)
		o.ok = o.ok && -exact <= n && n <= exact
	}
}

func (o *object) key(key string) {
	if o.out[len(o.out)-1] != '{' {
		o.out = append(o.out, ',')
	}
	o.out = append(o.out, key...)
}
