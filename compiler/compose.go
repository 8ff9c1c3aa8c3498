package compiler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// join stands between parts of a section and between sections.
const join = "\n\n"

// maxLine is how long a heading or a fact may be.
const maxLine = 200

// pool is a budget of text: so much for each, and so much for all together.
type pool struct {
	each, left int
	// eachCode and totalCode are the diagnostics of the two limits.
	eachCode, totalCode string
}

// fit cuts a text to what the pool allows and takes that from the pool. It
// says which of the two limits was the narrower one.
func (p *pool) fit(body string) (text.Fitted, phases.Limit) {
	limit, room := phases.LimitSection, p.each
	if p.left < room {
		limit, room = phases.LimitTotal, p.left
	}
	f := text.Cut(body, room, text.Frame{})
	p.left -= text.Chars(f.Text)
	return f, limit
}

// compose makes the text of a section. It is false when there is none, which
// is then recorded.
func (c *compilation) compose(s *section) bool {
	s.text = trim(guard(valid(s.final)))
	if s.text != s.final && s.OriginalChars > 0 && s.Truncation == nil {
		s.OriginalChars = 0 // blanks at the ends are no cut
	}
	parts := s.cuts
	if s.raw != "" {
		t, cut, ok := c.fitRaw(s)
		if !ok && s.text == "" {
			return false
		}
		if t != "" {
			parts = append(slices.Clip(parts), cut)
			s.text = paragraphs(s.text, t, s.note)
		}
	}
	if s.text == "" {
		c.leaveOut(s, ReasonBlank)
		return false
	}
	s.measure(parts)
	return true
}

// fitRaw normalises, escapes and cuts the text that was not prepared by others.
// It is false when a budget has no room for any of it.
func (c *compilation) fitRaw(s *section) (string, phases.Truncation, bool) {
	body := valid(s.raw)
	if body != s.raw {
		c.diagnose(s.SectionID, phases.SeverityWarning, CodeInvalidUTF8, "the text of "+s.SectionID+" was not UTF-8 without NUL and was repaired")
	}
	body, _ = text.Escape(text.Normalize(body), text.Frame{})
	if body = trim(body); body == "" {
		return "", phases.Truncation{}, true
	}
	p := s.pool
	if p == nil {
		p = &c.texts
	}
	f, limit := p.fit(body)
	if s.file != "" {
		c.fileKept(s, f.Kept)
	}
	t := phases.Truncation{Original: f.Original, Kept: f.Kept}
	switch {
	case f.Omitted:
		c.record(s, ReasonBudget, f.Original)
		c.diagnose(s.SectionID, phases.SeverityWarning, p.code(limit, phases.CodeLeftOut),
			fmt.Sprintf("the text for %s was left out: the %s limit leaves no room for any of its %s characters", s.SectionID, limit, text.Thousands(f.Original)))
	case f.Cut:
		t.Limit = limit
		c.diagnose(s.SectionID, phases.SeverityWarning, p.code(limit, p.eachCode),
			fmt.Sprintf("the text for %s was cut by the %s limit: kept %s of %s characters", s.SectionID, limit, text.Thousands(f.Kept), text.Thousands(f.Original)))
	}
	return f.Text, t, !f.Omitted
}

// code is the total's own code where that limit did it, else the other one.
func (p *pool) code(limit phases.Limit, other string) string {
	if limit == phases.LimitTotal && p.totalCode != p.eachCode {
		return p.totalCode
	}
	return other
}

// measure fills in the lengths. parts describe what the text was made of; none
// means one part, which was not cut here.
func (s *section) measure(parts []phases.Truncation) {
	s.Chars = text.Chars(s.text)
	if len(parts) == 0 {
		if s.OriginalChars <= 0 {
			s.OriginalChars = s.Chars
		}
		return
	}
	total := combine(parts)
	if total.Limit == "" {
		s.OriginalChars = s.Chars
		return
	}
	s.Truncation = &total
	s.OriginalChars = total.Original + (len(parts)-1)*text.Chars(join)
	if s.note != "" {
		s.OriginalChars += text.Chars(join + s.note)
	}
}

// combine adds up what was cut from parts and names the limit that took most;
// of equal ones the first in the order of limits.
func combine(parts []phases.Truncation) phases.Truncation {
	var out phases.Truncation
	most := math.MinInt
	for _, p := range parts {
		out.Original += p.Original
		out.Kept += p.Kept
		if lost := p.Original - p.Kept; p.Limit != "" && (lost > most || lost == most && rank(p.Limit) < rank(out.Limit)) {
			out.Limit, most = p.Limit, lost
		}
	}
	return out
}

func rank(l phases.Limit) int {
	return slices.Index([]phases.Limit{
		phases.LimitPlugin, phases.LimitContribution, phases.LimitSubscription, phases.LimitSection, phases.LimitTotal,
	}, l)
}

// paragraphs joins the texts that are not empty by blank lines.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), join)
}

// trim removes blank lines in front and blanks behind. It keeps the indentation
// of the first line.
func trim(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	for {
		i := strings.IndexByte(s, '\n')
		if i < 0 || strings.TrimSpace(s[:i]) != "" {
			return s
		}
		s = s[i+1:]
	}
}

// guard escapes the boundary in text that should hold none. Merge has done so
// already: this keeps the promise to whoever splits the prompt, whatever calls.
func guard(s string) string {
	if !strings.Contains(s, Boundary) {
		return s
	}
	return strings.ReplaceAll(s, Boundary, Boundary[:1]+`\`+Boundary[1:])
}

// valid repairs what is not UTF-8 without NUL.
func valid(s string) string { return text.Repair(s) }

// oneLine makes a line of bounded length that can stand in a heading or a list.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, valid(s))
	if s = strings.TrimSpace(s); text.Chars(s) > maxLine {
		s = text.Head(s, maxLine-1) + "…"
	}
	return guard(s)
}

// heading is a section's title, or its id for want of one.
func heading(title, id string) string {
	if t := oneLine(title); t != "" {
		return t
	}
	return id
}

// leaveOut records a section that is not in the prompt.
func (c *compilation) leaveOut(s *section, reason string) {
	c.record(s, reason, text.Chars(s.final)+text.Chars(s.raw))
}

func (c *compilation) record(s *section, reason string, chars int) {
	c.out.LeftOut = append(c.out.LeftOut, phases.LeftOut{ID: s.SectionID, Owner: s.Owner, Reason: reason, Chars: chars})
}

// diagnose adds a diagnostic about a section. The messages name ids, limits and
// numbers only, so they are safe for users.
func (c *compilation) diagnose(id string, severity phases.Severity, code, message string) {
	c.out.Diagnostics = append(c.out.Diagnostics, phases.Diagnostic{
		Code: code, Severity: severity, Message: message, Slot: id, SafeForUser: true,
	})
}
