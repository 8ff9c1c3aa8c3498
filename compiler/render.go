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

// The roles of messages.
const (
	roleSystem = "system"
	roleUser   = "user"
)

// render writes the prompt: the sections are in order already. The full text
// is written once; parts and sections are substrings of it.
func (c *compilation) render() {
	p := &c.out.Prompt
	p.SystemMessages, p.UserMessages = []Message{}, []Message{}
	c.rendered = make([]string, len(c.sections))
	full := c.write()
	pos, dynamicFrom := 0, -1
	for i, s := range c.sections {
		if part(s) > partDynamic {
			p.addMessage(s.SectionID, part(s), s.text)
			c.rendered[i] = s.text
			continue
		}
		pos += len(c.separator(i))
		if part(s) == partDynamic && dynamicFrom < 0 {
			dynamicFrom = pos
		}
		c.rendered[i] = full[pos : pos+s.size()]
		pos += s.size()
	}
	p.split(full, dynamicFrom)
}

// addMessage adds a section that is a message.
func (p *Prompt) addMessage(id string, part int, text string) {
	if part == partSystemMessages {
		p.SystemMessages = append(p.SystemMessages, Message{SectionID: id, Role: roleSystem, Text: text})
		return
	}
	p.UserMessages = append(p.UserMessages, Message{SectionID: id, Role: roleUser, Text: text})
}

// split sets the parts of the full text, whose dynamic part begins at the given
// place; below 0 there is none.
func (p *Prompt) split(full string, dynamicFrom int) {
	p.FullText = full
	switch {
	case dynamicFrom < 0:
		p.StableText = full
	case dynamicFrom == 0:
		p.DynamicText = full
	default:
		p.StableText, p.DynamicText, p.Boundary = full[:dynamicFrom-len(between)], full[dynamicFrom:], Boundary
	}
}

// write joins the sections of the system prompt.
func (c *compilation) write() string {
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
		for _, piece := range s.pieces() {
			b.WriteString(piece)
		}
	}
	return b.String()
}

// separator is what stands before section i.
func (c *compilation) separator(i int) string {
	if i == 0 {
		return ""
	}
	return separator(false, part(c.sections[i-1]), part(c.sections[i]))
}

// separator is what stands between two sections of the system prompt, or before
// the first one.
func separator(first bool, before, now int) string {
	switch {
	case first:
		return ""
	case before == partStable && now == partDynamic:
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
