package chain

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/sdk"
)

func (r *resolver) fill(src *Source, f directory, at place) {
	o, c := &r.chain.Options, &at.content
	src.RealPath, src.MTimeMs = at.path, c.info.MTimeMs
	src.SHA256 = c.sum.String()
	src.Bytes = int64(len(c.raw))
	if c.capped {
		src.Bytes = max(src.Bytes, c.info.Size)
		r.report(diagnostic(CodeReadCap, src.Path, "only the first %d of %d bytes are read", len(c.raw), src.Bytes))
	}
	if c.isUTF16() || o.Checks.Normal && c.isBinary() {
		src.State, src.Reason = StateSkipped, string(CodeBinary)
		detail := "holds a NUL, so it is not text"
		if c.isUTF16() {
			detail = "is in UTF-16, which is not read: save it in UTF-8"
		}
		r.report(diagnostic(CodeBinary, src.Path, "%s", detail))
		return
	}
	untrusted := !r.trusted && !src.Scope.userWide()
	form := form{normal: o.Checks.Normal, strip: untrusted}
	text, replaced := form.text(c.raw)
	raw := c.raw
	if o.Markdown || src.Rule {
		_, text = frontMatter(text)
		raw = text
	}
	if o.Markdown {
		text, _ = withoutComments(text)
		raw = text
	}
	switch {
	case blank(o.Layout, text):
		src.State, src.Reason = StateSkipped, ReasonBlank
		return
	case untrusted && o.Untrusted != UntrustedText:
		r.withhold(src)
		return
	case untrusted:
		r.report(diagnostic(CodeUntrustedRoot, src.Path, "its root is not trusted; its text is used without characters that reorder or hide it"))
	}
	r.inspect(src.Path, c.raw, text, replaced, form)
	src.State = StateKept
	src.origin = origin{form: form, long: c.capped, untrusted: untrusted, sum: c.sum, id: c.info.ID}
	if o.Layout == LayoutDelimited {
		at.content.raw = raw
		r.fillBody(src, f, at, text)
	} else {
		if o.Imports == ImportInline || o.Imports == ImportLines && o.Layout != LayoutJoined {
			text = r.expand(src, f, at, text)
			raw = text // of a part, nobody asks for the bytes of the file
		}
		src.note(text)
		limit := o.Budget.Total
		if src.Scope.userWide() {
			limit = maxRead // user-wide files take nothing of the total
		}
		src.fillWhole(text, raw, limit)
	}
}

// inspect reports replaced bytes and invisible characters.
func (r *resolver) inspect(path, raw, text string, replaced int, form form) {
	if replaced > 0 {
		r.report(diagnostic(CodeInvalidUTF8, path, "%d pieces are not valid UTF-8 text and were replaced", replaced))
	}
	if !r.chain.Options.Checks.Hidden {
		return
	}
	if form.strip { // what is stripped is reported too
		form.strip = false
		text, _ = form.text(raw)
	}
	h := FindHidden(text)
	if h.Count == 0 {
		return
	}
	const most = 20
	what, line, more := "characters that do not show", "lines", ""
	if h.Count == 1 {
		what = "character that does not show"
	}
	if len(h.Lines) == 1 {
		line = "line"
	}
	if n := len(h.Lines) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	lines := strings.ReplaceAll(strings.Trim(fmt.Sprint(h.Lines[:min(len(h.Lines), most)]), "[]"), " ", ", ")
	r.report(diagnostic(CodeHiddenUnicode, path, "%d %s, in %s %s%s", h.Count, what, line, lines, more))
}

func (r *resolver) fillBody(src *Source, f directory, at place, text string) {
	own := text
	if style := r.chain.Options.Imports; style == ImportLines || style == ImportInline {
		text = r.expand(src, f, at, text)
	}
	if isBlank(text) {
		src.State, src.Reason = StateSkipped, ReasonBlank // it imports nothing else
		return
	}
	src.Text = strings.TrimRight(text, "\n")
	if text != at.content.raw {
		src.origin.sum = sha256.Sum256([]byte(text))
	}
	src.note(text)
	if own != at.content.raw {
		src.origin.raw = at.content.raw
	}
	src.bound(r.chain.Options.Budget.File)
}

// note notes the digest of a text with imports.
func (s *Source) note(text string) {
	if len(s.origin.inserts) > 0 {
		s.imports = textSum(sha256.Sum256([]byte(text))).String()
	}
}

// bound drops what the limit of one file never lets through, so that a long chain of long files holds little memory.
func (s *Source) bound(limit int) {
	if len(s.Text) <= limit {
		return
	}
	s.origin.chars = utf8.RuneCountInString(s.Text)
	// Copies release the whole text. The little beyond the limit tells [Render] that something is missing.
	s.Text = strings.Clone(sdk.LongestPrefix(s.Text, limit+utf8.UTFMax, math.MaxInt))
	if s.origin.raw != "" {
		used := s.sourceBytes(len(s.Text))
		s.origin.raw = strings.Clone(s.origin.raw[:used])
	}
	s.origin.long = true
}

// fillWhole sets the text for the other layouts, which count bytes of the file.
func (s *Source) fillWhole(text, raw string, limit int) {
	if len(raw) > limit+utf8.UTFMax {
		s.origin.chars = utf8.RuneCountInString(text)
		raw = strings.Clone(raw[:limit+utf8.UTFMax])
		text, _ = s.origin.form.text(raw)
		s.origin.long = true
	}
	s.Text = text
	if text != raw {
		s.origin.raw = raw
	}
}
