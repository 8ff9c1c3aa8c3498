package chain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/sdk/prompttext"
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
	if o.Checks.Normal && c.isBinary() {
		src.State, src.Reason = StateSkipped, string(CodeBinary)
		r.report(diagnostic(CodeBinary, src.Path, "holds a NUL, so it is not text"))
		return
	}
	untrusted := !r.trusted && !src.Scope.userWide()
	form := form{normal: o.Checks.Normal, strip: untrusted}
	text, replaced := form.text(c.raw)
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
		r.fillBody(src, f, at, text)
	} else {
		limit := o.Budget.Total
		if src.Scope.userWide() {
			limit = maxRead // user-wide files take nothing of the total
		}
		src.fillWhole(text, c.raw, limit)
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
	if r.chain.Options.Imports {
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
	if len(src.origin.inserts) > 0 {
		src.imports = src.origin.sum.String()
	}
	if own != at.content.raw {
		src.origin.raw = at.content.raw
	}
	src.bound(r.chain.Options.Budget.File)
}

// bound drops what the limit of one file never lets through, so that a long chain of long files holds little memory.
func (s *Source) bound(limit int) {
	if len(s.Text) <= limit {
		return
	}
	s.origin.chars = utf8.RuneCountInString(s.Text)
	// Copies release the whole text. The little beyond the limit tells [Render] that something is missing.
	s.Text = strings.Clone(prompttext.Prefix(s.Text, limit+utf8.UTFMax, math.MaxInt))
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

// The limits of the imports of one source.
const (
	maxImportDepth = 3
	maxImports     = 32
	maxImportBytes = 64 << 10
)

// insert is an imported text in a source's. It stands for a line of the file.
type insert struct {
	at   int // index in the text
	size int // bytes of the imported text
	line int // bytes of the line that it replaced
}

// ownBytes counts the bytes of a file's own text that the first n bytes of its text with imports stand for.
func ownBytes(inserts []insert, n int) int {
	own := n
	for _, in := range inserts {
		switch {
		case n <= in.at:
			return own
		case n < in.at+in.size:
			return own - (n - in.at) // the line is not done yet
		}
		own += in.line - in.size
	}
	return own
}

type importer struct {
	*resolver
	src  *Source
	base base     // imports stay inside of it
	open []string // real paths of the files that are being expanded

	count, bytes int
	full         bool // too many imports, and reported
}

// expand puts what a source imports into its text. Refused imports stay as written.
func (r *resolver) expand(src *Source, f directory, at place, text string) string {
	im := &importer{resolver: r, src: src, base: base{f.real, f.dir}, open: []string{at.path}}
	if !src.Scope.userWide() {
		im.base = base{r.tree[0].real, r.tree[0].dir}
	}
	text, src.origin.inserts = im.expand(src.Path, at.path, text)
	return text
}

// expand expands one file, whose problems are reported under path.
func (im *importer) expand(path, real, text string) (string, []insert) {
	if !strings.Contains(text, "@./") && !strings.Contains(text, "@../") {
		return text, nil
	}
	var out strings.Builder
	var inserts []insert
	var code fence
	number := 0
	for line := range strings.Lines(text) {
		number++
		bare := strings.TrimSuffix(line, "\n")
		target, ok := importLine(bare)
		if code.inside(bare) || !ok {
			out.WriteString(line)
			continue
		}
		imported, refusal := im.load(real, target)
		if refusal != "" {
			im.refuse(path, number, refusal)
			out.WriteString(line)
			continue
		}
		inserts = append(inserts, insert{at: out.Len(), size: len(imported), line: len(bare)})
		out.WriteString(imported)
		out.WriteString(line[len(bare):])
	}
	return out.String(), inserts
}

func importLine(line string) (string, bool) {
	target, ok := strings.CutPrefix(strings.TrimRight(line, " \t"), "@")
	if !ok || !strings.HasPrefix(target, "./") && !strings.HasPrefix(target, "../") {
		return "", false
	}
	return target, !strings.ContainsFunc(target, isControl)
}

// refuse reports an import line that stays. Of the lines beyond the limit it reports one.
func (im *importer) refuse(path string, line int, why string) {
	if im.full {
		return
	}
	im.full = im.count > maxImports
	im.report(diagnostic(CodeImportRefused, path, "line %d: %s", line, why))
}

// load returns the expanded text of a file that the one at real names, or why there is none. Nothing is looked up
// before the path is known to stay inside.
func (im *importer) load(real, target string) (text, refusal string) {
	if im.count++; im.count > maxImports {
		return "", "more than 32 imports"
	}
	if len(im.open) > maxImportDepth {
		return "", "imports that are more than 3 deep"
	}
	path := filepath.Join(filepath.Dir(real), filepath.FromSlash(target))
	if !Within(im.base.real, path) {
		return "", "the path leads out of the tree"
	}
	const missing = "there is no such file"
	found, err := im.view.RealPath(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", missing
	case err != nil:
		return "", "the path cannot be followed: " + Cause(err)
	case slices.Contains(im.open, found):
		return "", "the file imports itself"
	}
	from, p := im.containing([]base{im.base}, found)
	if p != nil {
		return "", p.detail
	}
	c, p := im.walkTo(from, found)
	switch {
	case p != nil && p.gone:
		return "", missing
	case p != nil:
		return "", p.detail
	case c.isBinary():
		return "", "the file is not text"
	}
	if im.bytes += len(c.raw); c.capped || im.bytes > maxImportBytes {
		im.bytes -= len(c.raw)
		return "", "more than 64 KiB of imports"
	}
	form := im.src.origin.form
	text, replaced := form.text(c.raw)
	im.inspect(found, c.raw, text, replaced, form)
	im.open = append(im.open, found)
	text, _ = im.expand(found, found, text)
	im.open = im.open[:len(im.open)-1]
	return strings.TrimRight(text, "\n"), ""
}

// fence follows the fenced and indented code of a Markdown text, line by line.
type fence struct {
	mark byte // of the fence that is open, or 0
	size int
}

func (f *fence) inside(line string) bool {
	bare := strings.TrimLeft(line, " ")
	indent := len(line) - len(bare)
	mark, size := byte(0), 0
	if strings.HasPrefix(bare, "`") || strings.HasPrefix(bare, "~") {
		mark, size = bare[0], len(bare)-len(strings.TrimLeft(bare, bare[:1]))
	}
	if f.mark != 0 {
		if indent < 4 && mark == f.mark && size >= f.size && isBlank(bare[size:]) {
			f.mark = 0
		}
		return true
	}
	if indent >= 4 || strings.HasPrefix(bare, "\t") {
		return true
	}
	// A line of backquotes with another behind them is a span, not a fence.
	if size >= 3 && (mark != '`' || !strings.ContainsRune(bare[size:], '`')) {
		f.mark, f.size = mark, size
		return true
	}
	return false
}
