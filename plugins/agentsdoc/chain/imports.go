package chain

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// The bounds of the imports of one source.
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

// ownBytes counts the bytes of a file's own text that the first n bytes of its
// text with imports stand for.
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

// importer is the expansion of one source.
type importer struct {
	*resolver
	src  *Source
	base base     // imports stay inside of it
	open []string // real paths of the files that are being expanded

	count, bytes int
	full         bool // one import too many was met, and reported
}

// expand puts what a source imports into its text. What may not be imported
// stays as it is written.
func (r *resolver) expand(src *Source, f folder, at place, text string) string {
	im := &importer{resolver: r, src: src, base: base{f.real, f.dir}, open: []string{at.path}}
	if !src.Scope.userWide() {
		im.base = base{r.tree[0].real, r.tree[0].dir}
	}
	text, src.origin.inserts = im.expand(src.Path, at.path, text)
	return text
}

// expand is the expansion of one file, whose problems are reported under path.
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

// importLine returns the relative path of a line that is an import.
func importLine(line string) (string, bool) {
	target, ok := strings.CutPrefix(strings.TrimRight(line, " \t"), "@")
	if !ok || !strings.HasPrefix(target, "./") && !strings.HasPrefix(target, "../") {
		return "", false
	}
	return target, !strings.ContainsFunc(target, isControl)
}

// refuse reports a line that stays as it is. A file full of lines that are one
// too many is one problem.
func (im *importer) refuse(path string, line int, why string) {
	if im.full {
		return
	}
	im.full = im.count > maxImports
	im.report(diagnostic(CodeImportRefused, path, "line %d: %s", line, why))
}

// load returns the expanded text of a file that the one at real names, or why
// there is none. Nothing is looked up before the path is known to stay inside.
func (im *importer) load(real, target string) (text, refusal string) {
	if im.count++; im.count > maxImports {
		return "", "more than 32 imports"
	}
	if len(im.open) > maxImportDepth {
		return "", "imports that are more than 3 deep"
	}
	path := filepath.Join(filepath.Dir(real), filepath.FromSlash(target))
	if !within(im.base.real, path) {
		return "", "the path leads out of the tree"
	}
	found, err := im.view.RealPath(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "there is no such file"
	case err != nil:
		return "", "the path cannot be followed: " + cause(err)
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
		return "", "there is no such file"
	case p != nil:
		return "", p.detail
	case c.isBinary():
		return "", "the file is not text"
	}
	if im.bytes += len(c.raw); c.capped || im.bytes > maxImportBytes {
		im.bytes -= len(c.raw)
		return "", "more than 64 KiB of imports"
	}
	return im.nested(found, c), ""
}

// nested is the text of an imported file with what that imports.
func (im *importer) nested(real string, c content) string {
	form := im.src.origin.form
	text, replaced := form.Text(c.raw)
	im.inspect(real, c.raw, text, replaced, form)
	im.open = append(im.open, real)
	text, _ = im.expand(real, real, text)
	im.open = im.open[:len(im.open)-1]
	return strings.TrimRight(text, "\n")
}

// fence follows the fenced and indented code of a Markdown text, line by line.
type fence struct {
	mark byte // of the fence that is open, or 0
	size int
}

// inside reports whether a line is code, a fence included.
func (f *fence) inside(line string) bool {
	bare := strings.TrimLeft(line, " ")
	indent := len(line) - len(bare)
	mark, size := fenceOf(bare)
	if f.mark != 0 {
		if indent < 4 && mark == f.mark && size >= f.size && textrule.IsBlank(bare[size:]) {
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

// fenceOf returns the mark that a line begins with and how often it stands there.
func fenceOf(line string) (mark byte, size int) {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0, 0
	}
	return line[0], len(line) - len(strings.TrimLeft(line, line[:1]))
}
