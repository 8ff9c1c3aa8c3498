package chain

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// fill completes a source with what was read: its text, or why there is none.
func (r *resolver) fill(src *Source, f folder, at place) {
	o, c := &r.chain.Options, &at.content
	src.RealPath, src.MTimeMs = at.path, c.info.MTimeMs
	src.SHA256 = c.sum.String()
	src.Bytes = int64(len(c.raw))
	if c.capped {
		src.Bytes = max(src.Bytes, c.info.Size)
		r.report(diagnostic(CodeReadCap, src.Path, "only the first %d of %d bytes are read", len(c.raw), src.Bytes))
	}
	if o.Checks.Normal && c.isBinary() {
		src.State, src.Reason = StateSkipped, string(CodeBinary)
		r.report(diagnostic(CodeBinary, src.Path, "holds a NUL, so it is not text"))
		return
	}
	untrusted := r.distrusted(src.Scope)
	form := textrule.Form{Normal: o.Checks.Normal, Strip: untrusted}
	text, replaced := form.Text(c.raw)
	switch {
	case blank(o.Layout, text):
		src.State, src.Reason = StateSkipped, ReasonBlank
		return
	case untrusted && o.Untrusted != option.UntrustedText:
		r.withhold(src)
		return
	case untrusted:
		r.report(diagnostic(CodeUntrustedRoot, src.Path, "its root is not trusted; its text is used without characters that reorder or hide it"))
	}
	r.inspect(src.Path, c.raw, text, replaced, form)
	src.State = StateKept
	src.origin = origin{form: form, long: c.capped, untrusted: untrusted, sum: c.sum, id: c.info.ID}
	if o.Layout == option.LayoutDelimited {
		r.fillBody(src, f, at, text)
	} else {
		limit := o.Budget.Total
		if src.Scope.userWide() {
			limit = maxRead // it takes nothing of the total
		}
		src.fillWhole(text, c.raw, limit)
	}
}

// inspect reports what a text holds that a reader would not expect, and how much
// of it had to be replaced.
func (r *resolver) inspect(path, raw, text string, replaced int, form textrule.Form) {
	if replaced > 0 {
		r.report(diagnostic(CodeInvalidUTF8, path, "%d pieces are not valid UTF-8 text and were replaced", replaced))
	}
	if !r.chain.Options.Checks.Hidden {
		return
	}
	if form.Strip { // what is stripped is reported too, so the text is looked at as it was
		form.Strip = false
		text, _ = form.Text(raw)
	}
	if h := textrule.FindHidden(text); h.Count > 0 {
		r.report(diagnostic(CodeHiddenUnicode, path, "%s, in %s", unseen(h.Count), lineList(h.Lines)))
	}
}

// unseen counts hidden characters in words.
func unseen(n int) string {
	if n == 1 {
		return "1 character that does not show"
	}
	return fmt.Sprintf("%d characters that do not show", n)
}

// lineList names lines, the first few of many.
func lineList(lines []int) string {
	const most = 20
	var out strings.Builder
	out.WriteString("lines ")
	if len(lines) == 1 {
		out.Reset()
		out.WriteString("line ")
	}
	for i, n := range lines[:min(len(lines), most)] {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(strconv.Itoa(n))
	}
	if more := len(lines) - most; more > 0 {
		fmt.Fprintf(&out, " and %d more", more)
	}
	return out.String()
}

// fillBody gives a source the text that LayoutDelimited makes a body of.
func (r *resolver) fillBody(src *Source, f folder, at place, text string) {
	own := text
	if r.chain.Options.Imports {
		text = r.expand(src, f, at, text)
	}
	if textrule.IsBlank(text) {
		src.State, src.Reason = StateSkipped, ReasonBlank // it imports nothing else
		return
	}
	src.Text = strings.TrimRight(text, "\n")
	if text != at.content.raw {
		src.origin.sum = sha256.Sum256([]byte(text))
	}
	if len(src.origin.inserts) > 0 {
		src.imports = src.origin.sum.String()
	}
	if own != at.content.raw {
		src.origin.raw = at.content.raw
	}
	src.bound(r.chain.Options.Budget.File)
}

// bound drops what can never be rendered under the limit of one file, so that a
// long chain of long files holds no memory.
func (s *Source) bound(limit int) {
	if len(s.Text) <= limit {
		return
	}
	s.origin.chars = utf8.RuneCountInString(s.Text)
	// Copies, so that the whole is let go. A little more than the limit is left,
	// by which [Render] sees that something is missing.
	s.Text = strings.Clone(textrule.RunePrefix(s.Text, limit+utf8.UTFMax))
	if s.origin.raw != "" {
		used := s.sourceBytes(len(s.Text))
		s.origin.raw = strings.Clone(s.origin.raw[:used])
	}
	s.origin.long = true
}

// fillWhole gives a source the text of the other layouts, which count bytes of
// the file. More than the limit can never be used.
func (s *Source) fillWhole(text, raw string, limit int) {
	if len(raw) > limit+utf8.UTFMax {
		s.origin.chars = utf8.RuneCountInString(text)
		raw = strings.Clone(raw[:limit+utf8.UTFMax])
		text, _ = s.origin.form.Text(raw)
		s.origin.long = true
	}
	s.Text = text
	if text != raw {
		s.origin.raw = raw
	}
}
