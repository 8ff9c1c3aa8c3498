package compiler

import (
	"slices"
	"strings"
)

const (
	// headingMark begins a section's first line.
	headingMark = "## "
	// between is what stands between the parts.
	between = join + Boundary + join
)

// render writes the prompt: the sections are in order already. The full text
// is written once; parts and sections are substrings of it.
func (c *compilation) render() {
	p := &c.out.Prompt
	p.SystemMessages, p.UserMessages = []Message{}, []Message{}
	c.rendered = make([]string, len(c.sections))
	full, parted := c.write()
	pos := 0
	for i, s := range c.sections {
		switch part(s) {
		case partSystemMessages:
			p.SystemMessages = append(p.SystemMessages, Message{SectionID: s.SectionID, Role: "system", Text: s.text})
			c.rendered[i] = s.text
			continue
		case partUserMessages:
			p.UserMessages = append(p.UserMessages, Message{SectionID: s.SectionID, Role: "user", Text: s.text})
			c.rendered[i] = s.text
			continue
		}
		pos += len(c.separator(i))
		c.rendered[i] = full[pos : pos+s.size()]
		pos += s.size()
		if part(s) == partStable {
			p.StableText = full[:pos]
		}
	}
	p.FullText = full
	p.DynamicText = full[len(p.StableText):]
	if parted {
		p.DynamicText = p.DynamicText[len(between):]
		p.Boundary = Boundary
	}
}

// write joins the sections of the system prompt, and says whether the boundary
// is among them.
func (c *compilation) write() (full string, parted bool) {
	size := 0
	for i, s := range c.sections {
		if part(s) <= partDynamic {
			size += len(c.separator(i)) + s.size()
		}
	}
	var b strings.Builder
	b.Grow(size)
	for i, s := range c.sections {
		if part(s) > partDynamic {
			break // messages stand last
		}
		b.WriteString(c.separator(i))
		parted = parted || c.separator(i) == between
		for _, piece := range s.pieces() {
			b.WriteString(piece)
		}
	}
	return b.String(), parted
}

// separator is what stands before section i.
func (c *compilation) separator(i int) string {
	switch {
	case i == 0:
		return ""
	case part(c.sections[i]) == partDynamic && part(c.sections[i-1]) == partStable:
		return between
	default:
		return join
	}
}

// pieces are what a rendered section is made of. A message has no heading.
func (s *section) pieces() [4]string {
	if part(s) > partDynamic {
		return [4]string{s.text}
	}
	return [4]string{headingMark, s.Title, join, s.text}
}

func (s *section) size() int {
	n := 0
	for _, piece := range s.pieces() {
		n += len(piece)
	}
	return n
}

// fingerprint is that of the rendered section.
func (c *compilation) fingerprint(s *section) string {
	c.hasher.Reset()
	c.hash(s)
	return c.hasher.Sum()
}

func (c *compilation) hash(s *section) {
	for _, piece := range s.pieces() {
		c.hashText(piece)
	}
}

func (c *compilation) hashText(s string) {
	_, _ = c.hasher.WriteString(s) // a hash never returns an error
}

// fingerprints makes those of the parts.
func (c *compilation) fingerprints() {
	f, p := &c.out.Fingerprints, &c.out.Prompt
	whole := func(s string) string {
		c.hasher.Reset()
		c.hashText(s)
		return c.hasher.Sum()
	}
	f.FingerprintStable = whole(p.StableText)
	f.FingerprintDynamic = whole(p.DynamicText)
	f.FingerprintFull = whole(p.FullText)
	f.FingerprintDynamicWithoutExtraSystem = f.FingerprintDynamic
	if slices.ContainsFunc(c.sections, isFacts) {
		c.hasher.Reset()
		first := true
		for _, s := range c.sections {
			if part(s) != partDynamic || isFacts(s) {
				continue
			}
			if !first {
				c.hashText(join)
			}
			first = false
			c.hash(s)
		}
		f.FingerprintDynamicWithoutExtraSystem = c.hasher.Sum()
	}
}

func isFacts(s *section) bool { return s.SectionID == idExtraSystem }
