package manifest

import (
	"encoding/binary"
	"errors"
	"time"
)

// outlineForm is the first byte of an encoded outline, formOfAgent that of one with OfAgent, formObserved with Observed.
const outlineForm, formOfAgent, formObserved = 1, 2, 3

var errOutline = errors.New("the outline of a manifest is cut off, damaged, or of another form")

// Append appends the outline's encoding. Equal outlines have equal encodings.
func (o *Outline) Append(buf []byte) []byte {
	form := byte(outlineForm)
	switch {
	case o.Observed:
		form = formObserved
	case o.OfAgent:
		form = formOfAgent
	}
	c := outlineCoder{writing: true, buf: append(buf, form), places: make(map[string]uint64, 48)}
	c.outline(o)
	return c.buf
}

// ParseOutline reads what [Outline.Append] wrote. The outline does not refer to data.
func ParseOutline(data []byte) (Outline, error) {
	var o Outline
	if len(data) == 0 || data[0] < outlineForm || data[0] > formObserved {
		return o, errOutline
	}
	o.OfAgent, o.Observed = data[0] == formOfAgent, data[0] == formObserved
	c := outlineCoder{buf: data[1:], data: string(data[1:]), known: make([]string, 0, 48)}
	c.outline(&o)
	if c.failed || len(c.buf) > 0 {
		return Outline{}, errOutline
	}
	return o, nil
}

// outlineCoder writes outlines, or reads them: one walk over the fields does both. Numbers are varints, a mark is 8
// bytes, and a string that was there before is its number.
type outlineCoder struct {
	writing bool
	// buf is what was written, or what is left to read: the end of data.
	buf    []byte
	data   string
	places map[string]uint64
	known  []string
	failed bool
}

func (c *outlineCoder) fail() { c.failed, c.buf = true, nil }

func (c *outlineCoder) outline(o *Outline) {
	c.text((*string)(&o.Kind))
	c.flag(&o.Sent)
	c.texts(&o.ManifestID, &o.WorkspaceID, &o.ThreadID, &o.TurnID, &o.SessionID)
	c.number(&o.Seq)
	c.ints(&o.Round, &o.Epoch, &o.ToolTokens)
	c.time(&o.CreatedAt)
	c.texts(&o.Provider, &o.Model, (*string)(&o.Profile), (*string)(&o.Mode), &o.Build, &o.CompilerVersion)
	c.marks(&o.Config, &o.Key, &o.ToolList, &o.PlanKey)
	if optional(c, &o.Rules) {
		c.ints(&o.Rules.MinimumTokens, &o.Rules.LifetimeS, &o.Rules.Step)
		c.flag(&o.Rules.Explicit)
	}
	each(c, &o.Breakpoints, func(b *Breakpoint) { c.texts((*string)(&b.After), &b.SectionID) })
	each(c, &o.Sections, c.section)
	each(c, &o.Tools, c.tool)
	each(c, &o.HostTools, c.tool)
	if h := &o.History; optional(c, h) {
		c.ints(&(*h).Entries, &(*h).Cut, &(*h).Summarized, &(*h).Repaired)
		c.marks(&(*h).Hash)
		if o.Observed {
			c.ints(&(*h).Same, &(*h).Cached)
			c.texts(&(*h).Previous, &(*h).Part, &(*h).Owner)
		}
	}
	each(c, &o.Plugins, func(p *outlinePlugin) {
		c.texts(&p.Name, &p.Version)
		c.marks(&p.Program, &p.Grant)
	})
}

func (c *outlineCoder) section(s *OutlineSection) {
	c.texts(&s.SectionID, &s.Owner, (*string)(&s.Stability), (*string)(&s.Placement))
	c.ints(&s.Chars, &s.Tokens)
	c.marks(&s.Hash)
	each(c, &s.Spans, func(p *outlineSpan) {
		c.texts(&p.Owner, &p.ContributionID)
		c.ints(&p.Chars, &p.Priority)
		c.marks(&p.Hash)
	})
}

func (c *outlineCoder) tool(t *outlineTool) {
	c.texts(&t.Name, &t.Owner, &t.Bundle, &t.HiddenDomain)
	c.marks(&t.Hash)
}

// each codes a list. An empty one is read as nil.
func each[T any](c *outlineCoder, list *[]T, code func(*T)) {
	n := uint64(len(*list))
	c.number(&n)
	if n > uint64(len(c.buf)) && !c.writing { // an element takes at least a byte
		c.fail()
	}
	if c.failed {
		return
	}
	if !c.writing && n > 0 {
		*list = make([]T, n)
	}
	for i := range *list {
		code(&(*list)[i])
	}
}

// optional codes whether a value is there. What is read is made.
func optional[T any](c *outlineCoder, p **T) bool {
	there := *p != nil
	c.flag(&there)
	if there && *p == nil {
		*p = new(T)
	}
	return there
}

func (c *outlineCoder) number(n *uint64) {
	if c.writing {
		c.buf = binary.AppendUvarint(c.buf, *n)
		return
	}
	if len(c.buf) > 0 && c.buf[0] < 0x80 {
		*n, c.buf = uint64(c.buf[0]), c.buf[1:]
		return
	}
	v, size := binary.Uvarint(c.buf)
	if *n = v; size <= 0 {
		c.fail()
		return
	}
	c.buf = c.buf[size:]
}

func (c *outlineCoder) ints(list ...*int) {
	for _, n := range list {
		v := uint64(*n<<1) ^ uint64(*n>>63) //nolint:gosec // zigzag
		c.number(&v)
		*n = int(v>>1) ^ -int(v&1)
	}
}

func (c *outlineCoder) flag(f *bool) {
	var n uint64
	if *f {
		n = 1
	}
	c.number(&n)
	*f = n == 1
}

func (c *outlineCoder) marks(list ...*Mark) {
	for _, m := range list {
		switch {
		case c.writing:
			c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(*m))
		case len(c.buf) < 8:
			c.fail()
		default:
			*m, c.buf = Mark(binary.LittleEndian.Uint64(c.buf)), c.buf[8:]
		}
	}
}

func (c *outlineCoder) time(t *time.Time) {
	seconds, nanos := int(t.Unix()), t.Nanosecond()
	c.ints(&seconds, &nanos)
	if !c.writing {
		*t = time.Unix(int64(seconds), int64(nanos)).UTC()
	}
}

func (c *outlineCoder) texts(list ...*string) {
	for _, s := range list {
		c.text(s)
	}
}

// text codes 0, the length and the bytes of a new string, 1 for the empty one, and else the number of a known one.
func (c *outlineCoder) text(s *string) {
	var n uint64
	if c.writing {
		if n = c.places[*s]; *s == "" {
			n = 1
		}
		c.number(&n)
		if n == 0 {
			c.places[*s] = uint64(len(c.places)) + 2
			c.buf = append(binary.AppendUvarint(c.buf, uint64(len(*s))), *s...)
		}
		return
	}
	switch c.number(&n); {
	case n == 0:
		c.number(&n)
		if n > uint64(len(c.buf)) {
			c.fail()
			return
		}
		at := len(c.data) - len(c.buf)
		*s, c.buf = c.data[at:at+int(n)], c.buf[n:]
		c.known = append(c.known, *s)
	case n == 1:
		*s = ""
	case n-2 < uint64(len(c.known)):
		*s = c.known[n-2]
	default:
		c.fail()
	}
}
