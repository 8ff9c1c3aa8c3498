package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// join stands between parts of a section and between sections.
const join = "\n\n"

const maxLine = 200 // characters of a heading or a fact

// pool is a budget of text: for each text, and for all together.
type pool struct {
	each, left          int
	eachCode, totalCode string // the diagnostics of the two limits
}

// fit cuts a text to what the pool allows and debits that. It returns the narrower limit.
func (p *pool) fit(body string) (text.Fitted, phases.Limit) {
	limit, chars := phases.LimitSection, p.each
	if p.left < chars {
		limit, chars = phases.LimitTotal, p.left
	}
	f := text.Cut(body, chars, text.Frame{})
	p.left -= text.Chars(f.Text)
	return f, limit
}

// fit normalises, escapes and cuts raw.
func (c *compilation) fit(s *section) {
	body := valid(s.raw)
	if body != s.raw {
		s.remark(codeInvalidUTF8, "the text of "+s.SectionID+" was not UTF-8 without NUL and was repaired")
	}
	body, _ = text.Escape(text.Normalize(body), text.Frame{})
	if body = trim(body); body == "" {
		return
	}
	p := s.pool
	if p == nil {
		p = &c.texts
	}
	f, limit := p.fit(body)
	if at := slices.IndexFunc(c.out.Files, func(f manifest.File) bool { return f.Path == s.row.File }); at >= 0 {
		c.out.Files[at].Chars = f.Kept
	}
	s.body, s.bodyCut = f.Text, phases.Truncation{Original: f.Original, Kept: f.Kept}
	switch {
	case f.Omitted:
		s.omitted = &phases.Omitted{ID: s.SectionID, Owner: s.Owner, Reason: ReasonBudget, Chars: f.Original}
		s.remark(p.code(limit, phases.CodeOmitted),
			fmt.Sprintf("the text for %s was omitted: the %s limit leaves no room for any of its %s characters", s.SectionID, limit, text.Thousands(f.Original)))
	case f.Cut:
		s.bodyCut.Limit = limit
		s.remark(p.code(limit, p.eachCode),
			fmt.Sprintf("the text for %s was cut by the %s limit: kept %s of %s characters", s.SectionID, limit, text.Thousands(f.Kept), text.Thousands(f.Original)))
	}
}

// compose makes the text of a section and reports whether there is any.
func (c *compilation) compose(s *section) bool {
	s.text = trim(guard(valid(s.final)))
	if s.text != s.final && s.OriginalChars > 0 && s.Truncation == nil {
		s.OriginalChars = 0 // blanks at the ends are not a cut
	}
	c.out.Diagnostics = append(c.out.Diagnostics, s.remarks...)
	if s.omitted != nil {
		c.out.Omitted = append(c.out.Omitted, *s.omitted)
		if s.text == "" {
			return false
		}
	}
	s.attribute(&c.spans, s.text)
	parts := s.cuts
	if s.body != "" {
		parts = append(slices.Clip(parts), s.bodyCut)
		s.text = paragraphs(s.text, s.body, s.note)
	}
	if s.text == "" {
		c.omit(s, ReasonBlank)
		return false
	}
	s.measure(parts)
	return true
}

// code is the total's own code if the total did it, else the other one.
func (p *pool) code(limit phases.Limit, other string) string {
	if limit == phases.LimitTotal && p.totalCode != p.eachCode {
		return p.totalCode
	}
	return other
}

// measure fills in the length before cuts. parts describe the cut parts of the text, if any.
func (s *section) measure(parts []phases.Truncation) {
	if len(parts) == 0 {
		s.OriginalChars = cmp.Or(max(s.OriginalChars, 0), s.Chars)
		return
	}
	total := sections.Combine(parts)
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

// paragraphs joins the non-empty texts by blank lines.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), join)
}

// trim removes leading blank lines and trailing blanks.
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

// guard escapes the boundary. Merging does so too; this keeps the promise whoever calls.
func guard(s string) string {
	return strings.ReplaceAll(s, Boundary, Boundary[:1]+`\`+Boundary[1:])
}

func valid(s string) string { return text.Repair(s) }

// oneLine makes a line of bounded length for a heading or a list.
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

// heading is a section's title, by default its id.
func heading(title, id string) string { return cmp.Or(oneLine(title), id) }

// omit records a section that is not in the prompt.
func (c *compilation) omit(s *section, reason string) {
	c.out.Omitted = append(c.out.Omitted, phases.Omitted{ID: s.SectionID, Owner: s.Owner, Reason: reason, Chars: text.Chars(s.final) + text.Chars(s.raw)})
}

// diagnose adds a diagnostic about a section. Messages name ids, limits and numbers only, so they are safe for users.
func (c *compilation) diagnose(id string, severity phases.Severity, code, message string) {
	c.out.Diagnostics = append(c.out.Diagnostics, diagnostic(id, severity, code, message))
}

func (s *section) remark(code, message string) {
	s.remarks = append(s.remarks, diagnostic(s.SectionID, phases.SeverityWarning, code, message))
}

func diagnostic(id string, severity phases.Severity, code, message string) phases.Diagnostic {
	return phases.Diagnostic{Code: code, Severity: severity, Message: message, Slot: id, SafeForUser: true}
}
