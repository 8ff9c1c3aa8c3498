package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/sdk"
)

// The limits of the imports of one source.
const maxImportBytes = 64 << 10 // or the whole budget, if that is more

// most is how many mentions are looked up: in prose, many are names of other things.
func (s ImportStyle) most() int {
	if s == ImportLines {
		return 32
	}
	return 256
}

// depth is how many files deep imports go.
func (s ImportStyle) depth() int {
	switch s {
	case ImportInline:
		return 5
	case ImportListed:
		return 4
	default:
		return 3
	}
}

// Import is a file whose text stands within that of a source.
type Import struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of the bytes that were read, in hex
	at     int    // index of its text
	by     Importer
}

// Importer is the line of a file that imports another one.
type Importer struct {
	Path string
	Line int
}

// ImporterOf returns what imports the file with one of these paths; empty if nothing does.
func (c *Chain) ImporterOf(paths ...string) Importer {
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.ImportedBy != "" && slices.Contains(paths, s.Path) {
			return Importer{s.ImportedBy, s.importedLine}
		}
		for _, in := range s.Imports {
			if slices.Contains(paths, in.Path) {
				return in.by
			}
		}
	}
	return Importer{}
}

// imported are the imports that begin within the first n bytes of the text, about.
func (s *Source) imported(n int) []Import {
	i := slices.IndexFunc(s.Imports, func(in Import) bool { return in.at >= n })
	if i < 0 {
		return s.Imports
	}
	return s.Imports[:i]
}

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

// refusal is why a file is not imported; empty if it is.
type refusal string

const (
	refuseCount   refusal = "more than %d imports"
	refuseDepth   refusal = "imports that are more than %d deep"
	refuseOutside refusal = "the path leads out of the tree"
	refuseMissing refusal = "there is no such file"
	refuseCycle   refusal = "the file imports itself"
	refuseText    refusal = "the file is not text"
	refuseName    refusal = "the suffix of the name is not one of a text"
	refuseStray   refusal = "it is there and not imported: white space must stand around the name, and \"\\ \" for a blank in it"
)

// importer imports the files that one source names.
type importer struct {
	*resolver
	style ImportStyle
	src   *Source
	bases []base   // imports stay inside of one of them
	open  []string // real paths of the files that are being read

	imports []Import
	count   int
	strayed int // names that strays has looked up
	bytes   int
	full    bool // too many imports, and reported
	told    map[string]bool
}

// importer returns the importer of a source that was read at a place of a directory. Files of the tree import from the
// tree, the user's own from their directory, and both from where the options allow it.
func (r *resolver) importer(src *Source, f directory, at place) *importer {
	im := &importer{resolver: r, style: r.chain.Options.Imports, src: src, told: map[string]bool{}, bases: []base{{f.real, f.dir}}, open: []string{at.path}}
	switch {
	case !src.Scope.userWide():
		im.bases[0] = base{r.tree[0].real, r.tree[0].dir}
	case src.Scope == ScopeGlobal && r.global.dir != nil:
		im.bases[0] = base{r.global.real, r.global.dir}
	}
	for _, real := range r.allowedDirectories() {
		im.bases = append(im.bases, base{real: real})
	}
	return im
}

// expand puts what a source imports into its text.
func (r *resolver) expand(src *Source, f directory, at place, text string) string {
	im := r.importer(src, f, at)
	if im.style == ImportInline {
		im.open = nil // a file may import itself, once
	}
	text, src.origin.inserts = im.expand(src.Path, at.path, text, 0)
	src.Imports = im.imports
	return text
}

// expand expands one file, whose problems are reported under path.
func (im *importer) expand(path, real, text string, depth int) (string, []insert) {
	if im.style == ImportInline {
		prose := []byte(text)
		for _, region := range codeRegions(text) {
			clear(prose[region[0]:region[1]])
		}
		defer func() { im.strays(path, real, prose, mentionLine(text, nil), depth) }()
	}
	list := im.style.mentions(text)
	if len(list) == 0 || im.style == ImportInline && depth >= im.style.depth() {
		return text, nil
	}
	var out strings.Builder
	var inserts []insert
	last, lineAt := 0, mentionLine(text, nil)
	for _, m := range list {
		out.WriteString(text[last:m.start])
		last = m.end
		imported, why := im.load(Importer{path, lineAt(m.start)}, real, m.target, depth, out.Len())
		if why != "" {
			im.refuse(Importer{path, lineAt(m.start)}, real, m.target, why)
		}
		piece := im.piece(real, text[m.start:m.end], m.target, imported, why)
		if piece != text[m.start:m.end] {
			inserts = append(inserts, insert{at: out.Len(), size: len(piece), line: m.end - m.start})
		}
		out.WriteString(piece)
	}
	out.WriteString(text[last:])
	return out.String(), inserts
}

// piece is what stands in the place of a mention: what was written, if it is refused, or what Gemini CLI puts there.
func (im *importer) piece(real, written, target, text string, why refusal) string {
	switch {
	case im.style != ImportInline && why == "":
		return text
	case im.style != ImportInline, im.count > im.style.most():
		return written
	case why == "":
		return "<!-- Imported from: " + target + " -->\n" + text + "\n<!-- End of import from: " + target + " -->"
	case why == refuseCycle:
		return "<!-- File already processed: " + target + " -->"
	case why == refuseOutside:
		why = "Path traversal attempt"
	case why == refuseMissing:
		why = refusal("ENOENT: no such file or directory, access '" + im.place(real, target) + "'")
	}
	return "<!-- Import failed: " + target + " - " + string(why) + " -->"
}

// place is the path that a file at real means by a target, or empty without one.
func (im *importer) place(real, target string) string {
	path := filepath.FromSlash(target)
	rest, home := strings.CutPrefix(target, "~/")
	switch {
	case im.style == ImportListed && home && im.chain.Options.Home == "":
		return ""
	case im.style == ImportListed && home:
		return filepath.Join(im.chain.Options.Home, filepath.FromSlash(rest))
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	default:
		return filepath.Join(filepath.Dir(real), path)
	}
}

// refuse reports a file that is not imported, once a line. Of those beyond the limit it reports one.
func (im *importer) refuse(by Importer, real, target string, why refusal) {
	if im.full {
		return
	}
	im.full = im.count > im.style.most()
	key := fmt.Sprint(by, im.place(real, target))
	if !im.told[key] || im.full {
		im.report(diagnostic(CodeImportRefused, by.Path, "line %d: @%s: %s", by.Line, sdk.PlainName(target), why))
	}
	im.told[key] = true
}

// load returns the expanded text of a file that the one at real names.
func (im *importer) load(by Importer, real, target string, depth, at int) (string, refusal) {
	if im.style == ImportLines && depth >= im.style.depth() {
		im.count++
		return "", refusal(fmt.Sprintf(string(refuseDepth), im.style.depth()))
	}
	found, _, why := im.find(real, target)
	if why != "" {
		return "", why
	}
	im.imports = append(im.imports, Import{Path: found.path, SHA256: found.content.sum.String(), at: at, by: by})
	own := len(im.imports)
	form := im.src.origin.form
	text, replaced := form.text(found.content.raw)
	im.inspect(found.path, found.content.raw, text, replaced, form)
	im.open = append(im.open, found.path)
	text, _ = im.expand(found.path, found.path, text, depth+1)
	im.open = im.open[:len(im.open)-1]
	for i := range im.imports[own:] {
		im.imports[own+i].at += at
	}
	if im.style == ImportInline {
		return text, ""
	}
	return strings.TrimRight(text, "\n"), ""
}

// find reads a file that the one at real names; path is how it is called. Nothing is looked up before the path is known
// to stay inside.
func (im *importer) find(real, target string) (at place, path string, why refusal) {
	if im.count++; im.count > im.style.most() {
		return at, "", refusal(fmt.Sprintf(string(refuseCount), im.style.most()))
	}
	path = im.place(real, target)
	if !slices.ContainsFunc(im.bases, func(b base) bool { return Within(b.real, path) }) {
		return at, path, refuseOutside
	}
	found, err := im.view.RealPath(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return at, path, refuseMissing
	case err != nil:
		return at, path, refusal("the path cannot be followed: " + fsview.Cause(err))
	case im.once[found] || slices.Contains(im.open, found):
		return at, path, refuseCycle
	}
	if im.style == ImportListed && !hasTextName(path) {
		return at, path, refuseName
	}
	at.path = found
	from, p := im.containing(im.bases, found)
	if p != nil {
		return at, path, refusal(p.detail)
	}
	at.content, p = im.walkTo(from, found)
	switch c := &at.content; {
	case p != nil && p.gone:
		return at, path, refuseMissing
	case p != nil:
		return at, path, refusal(p.detail)
	case c.isBinary() || im.style == ImportListed && !utf8.ValidString(c.raw):
		return at, path, refuseText
	}
	most := max(maxImportBytes, im.chain.Options.Budget.Total)
	if im.bytes += len(at.content.raw); at.content.capped || im.bytes > most {
		im.bytes -= len(at.content.raw)
		return at, path, refusal(fmt.Sprintf("more than %d KiB of imports", most>>10))
	}
	return at, path, ""
}

// list adds the files that a source names, and those that they name, as sources behind it. Each file is taken once,
// wherever it is named.
func (r *resolver) list(index int, f directory, at place) {
	src := r.chain.Sources[index]
	im := r.importer(&src, f, at)
	im.list(&src, at.content.raw, at.path, 0)
}

func (im *importer) list(by *Source, raw, real string, depth int) {
	form := by.origin.form
	text, _ := form.text(raw)
	_, body := frontMatter(text)
	seen := map[string]bool{}
	front := strings.Count(text[:len(text)-len(body)], "\n")
	body, gaps := withoutComments(body)
	lineAt := mentionLine(body, append(gaps, gap{0, front}))
	defer func() { im.strays(by.Path, real, maskCode(body), lineAt, depth) }()
	for _, m := range im.style.mentions(body) {
		if seen[m.target] || depth >= im.style.depth() {
			continue
		}
		seen[m.target] = true
		at, path, why := im.find(real, m.target)
		if why != "" {
			if isWorthReport(m.target, why) {
				im.refuse(Importer{by.Path, lineAt(m.start)}, real, m.target, why)
			}
			continue
		}
		im.once[at.path] = true
		src := Source{Path: path, Display: im.display(path, by.Scope), Scope: by.Scope, ImportedBy: by.Path, importedLine: lineAt(m.start)}
		im.fill(&src, directory{}, at)
		if im.chain.Sources = append(im.chain.Sources, src); src.State == StateKept {
			im.list(&src, at.content.raw, at.path, depth+1)
		}
	}
}

// isWorthReport tells a path that somebody meant from a name that begins with "@".
func isWorthReport(target string, why refusal) bool {
	if why == refuseCycle {
		return false
	}
	meant := strings.HasSuffix(target, ".md") || strings.HasPrefix(target, "./") || strings.HasPrefix(target, "../") || strings.HasPrefix(target, "~/")
	return meant || why != refuseMissing && why != refuseOutside
}

// textSuffixes are those of files that Claude Code 2.1.332 imports, besides names without any.
const textSuffixes = `.md .txt .text .json .yaml .yml .toml .xml .csv .html .htm .css .scss .sass .less .js .ts .tsx .jsx .mjs .cjs .mts .cts .py .pyi
.pyw .rb .erb .rake .go .rs .java .kt .kts .scala .c .cpp .cc .cxx .h .hpp .hxx .cs .swift .sh .bash .zsh .fish .ps1 .bat .cmd .env .ini .cfg .conf
.config .properties .sql .graphql .gql .proto .vue .svelte .astro .ejs .hbs .pug .jade .php .pl .pm .lua .r .dart .ex .exs .erl .hrl .clj .cljs .cljc
.edn .hs .lhs .elm .ml .mli .f .f90 .f95 .for .cmake .make .makefile .gradle .sbt .rst .adoc .asciidoc .org .tex .latex .lock .log .diff .patch`

func hasTextName(path string) bool {
	suffix := filepath.Ext(strings.TrimLeft(filepath.Base(path), "."))
	return suffix == "" || slices.Contains(strings.Fields(textSuffixes), strings.ToLower(suffix))
}
