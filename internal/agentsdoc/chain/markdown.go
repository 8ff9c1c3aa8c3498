package chain

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/pathglob"
)

// fence follows the fenced code of a Markdown text, line by line.
type fence struct {
	mark byte // of the fence that is open, or 0
	size int
}

// fenced reports whether a line belongs to fenced code.
func (f *fence) fenced(line string) bool {
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
	// A line of backquotes with another behind them is a span, not a fence.
	if indent < 4 && size >= 3 && (mark != '`' || !strings.ContainsRune(bare[size:], '`')) {
		f.mark, f.size = mark, size
		return true
	}
	return false
}

// blocks tells the code of a Markdown text from its prose, line by line, well enough for what people write in
// instruction files: lists may hold indented text and fences, and HTML ends at a blank line.
type blocks struct {
	fence
	columns     []int // where the texts of the open items of lists begin
	html, prose bool  // what the line before was in
	quote       bool
}

type lineKind int

const (
	lineGoesOn lineKind = iota // of the paragraph before
	lineBegins                 // a block
	lineCode                   // code, HTML or where a link leads
)

func (b *blocks) next(line string) lineKind {
	bare := strings.TrimLeft(line, " \t")
	blank := strings.TrimSpace(bare) == ""
	column := columnOf(line[:len(line)-len(bare)])
	items := len(b.columns) // the line is in so many of them
	for items > 0 && column < b.columns[items-1] {
		items--
	}
	if items > 0 {
		column -= b.columns[items-1]
	}
	indented := column >= 4
	switch {
	case b.mark != 0 && len(b.columns) > 0: // in an item, a fence is indented
		b.fenced(bare)
		return lineCode
	case b.mark != 0:
		b.fenced(line)
		return lineCode
	case !indented && b.fenced(bare):
		b.columns, b.prose = b.columns[:items], false
		return lineCode
	case blank:
		b.html, b.prose = false, false
		return lineBegins
	case b.html:
		return lineCode
	case b.prose && indented:
		return lineGoesOn
	case indented:
		b.columns = b.columns[:items]
		return lineCode
	}
	return b.block(bare, column, items)
}

// block is next for a line that is neither code nor blank, in some items of lists and from a column there.
func (b *blocks) block(bare string, column, items int) lineKind {
	isTag, isBlock := isHTML(bare)
	size := itemSize(bare)
	quote := bare[0] == '>'
	begins := quote && !b.quote
	b.quote = quote
	switch {
	case isBlock || isTag && !b.prose:
		b.columns, b.html, b.prose = b.columns[:items], true, false
		return lineCode
	case isRule(bare), isHeading(bare):
		b.columns, b.prose = b.columns[:items], false
		return lineBegins
	case size > 0:
		return b.item(bare, column, items, size)
	case b.prose && !begins:
		return lineGoesOn
	case isDefinition(bare):
		return lineCode
	}
	b.columns, b.prose = b.columns[:items], true
	return lineBegins
}

// item is next for a line that begins an item of a list.
func (b *blocks) item(bare string, column, items, size int) lineKind {
	text := strings.TrimLeft(bare[size:], " \t")
	space := columnOf(bare[size : len(bare)-len(text)])
	isCode := space > 4 && text != ""
	if isCode || text == "" {
		space = 1
	}
	if items > 0 {
		column += b.columns[items-1]
	}
	b.columns, b.prose = append(b.columns[:items], column+size+space), !isCode
	if isCode || b.fenced(text) {
		b.prose = false
		return lineCode
	}
	return lineBegins
}

// columnOf is how far blanks and tabs lead.
func columnOf(space string) int {
	column := 0
	for i := range len(space) {
		if column++; space[i] == '\t' {
			column = (column + 3) &^ 3
		}
	}
	return column
}

// itemSize is the length of the mark that begins an item of a list; 0 for another line.
func itemSize(bare string) int {
	size := len(bare) - len(strings.TrimLeft(bare, "0123456789"))
	marks := ".)"
	if size == 0 {
		marks = "-*+"
	}
	if size == len(bare) || size > 9 || !strings.ContainsRune(marks, rune(bare[size])) {
		return 0
	}
	if rest := bare[size+1:]; rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0
	}
	return size + 1
}

// isRule reports whether a line is a thematic break.
func isRule(bare string) bool {
	marks := strings.NewReplacer(" ", "", "\t", "").Replace(bare)
	return len(marks) >= 3 && strings.ContainsRune("-*_", rune(marks[0])) && strings.Trim(marks, marks[:1]) == ""
}

func isHeading(bare string) bool {
	rest := strings.TrimLeft(bare, "#")
	size := len(bare) - len(rest)
	return size > 0 && size <= 6 && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// isDefinition reports whether a line says where links of a name lead.
func isDefinition(bare string) bool {
	name, target, ok := strings.Cut(bare, "]:")
	fields := strings.Fields(target)
	return ok && len(name) > 1 && name[0] == '[' && !strings.ContainsAny(name[1:], "[]") && len(fields) > 0 &&
		(len(fields) == 1 || strings.ContainsRune(`"'(`, rune(fields[1][0])))
}

// isHTML reports whether a line begins a block of HTML: with a tag by itself, or one of those that are blocks anyway,
// also in the midst of a paragraph. Comments are looked for elsewhere.
func isHTML(bare string) (isTag, isBlock bool) {
	if len(bare) < 3 || bare[0] != '<' || !isLetter(bare[1]) && bare[1] != '/' {
		return false, false
	}
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(bare[1:], "/")), ">")
	name, _, _ = strings.Cut(name, " ")
	isBlock = slices.Contains([]string{
		"article", "center", "details", "div", "dl", "footer", "header", "li", "main", "nav", "ol", "p", "section", "summary", "table", "td", "th", "tr", "ul",
	}, name)
	return strings.IndexByte(bare, '>') == len(strings.TrimSpace(bare))-1, isBlock
}

// frontMatter splits a text into what stands between its first line, "---", and the next such line, and the rest.
func frontMatter(text string) (matter, body string) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(text, byteOrderMark), "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", text
	}
	at := 0
	for line := range strings.Lines(rest) {
		at += len(line)
		if strings.TrimRight(line, " \t\r\n") == "---" {
			return rest[:at-len(line)], rest[at:]
		}
	}
	return "", text
}

// withoutComments drops the HTML comments that begin a line of prose. With them go the rest of their last line, if
// that is blank, and the blank lines after it.
func withoutComments(text string) (rest string, gaps []gap) {
	if !strings.Contains(text, "<!--") {
		return text, nil
	}
	plain := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var out strings.Builder
	var b blocks
	unclosed := false // no comment ends from here on
	for at := 0; at < len(plain); {
		line, _, _ := strings.Cut(plain[at:], "\n")
		end := min(len(plain), at+len(line)+1)
		bare := strings.TrimLeft(line, " ")
		indent := len(line) - len(bare)
		comment := !unclosed && strings.HasPrefix(bare, "<!--") && b.mark == 0 && !b.html && (indent == 0 || indent < 4 && len(b.columns) == 0)
		size := 0
		if comment {
			size = strings.Index(plain[at:], "-->")
			unclosed = size < 0
		}
		if !comment || unclosed {
			b.next(line)
			out.WriteString(plain[at:end])
			at = end
			continue
		}
		end = at + size
		if n := strings.IndexByte(plain[end:], '\n'); n >= 0 {
			end += n
		} else {
			end = len(plain)
		}
		for end < len(plain) && plain[end] == '\n' {
			end++
		}
		left := dropComments(plain[at:end])
		if isBlank(left) {
			left = ""
		}
		gaps = append(gaps, gap{out.Len(), strings.Count(plain[at:end], "\n") - strings.Count(left, "\n")})
		out.WriteString(left)
		b = blocks{}
		at = end
	}
	if out.Len() == len(plain) {
		return text, nil
	}
	return out.String(), gaps
}

func dropComments(text string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "<!--")
		_, after, closed := strings.Cut(rest, "-->")
		if !ok || !closed {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(before)
		text = after
	}
}

// matter are the values of a front matter that say when a rule applies.
type matter struct {
	globs   []string
	applies bool // whatever is touched
	manual  bool // a model or a person chooses it
}

// readMatter understands Claude Code's paths, if bare, and else Cursor's globs and alwaysApply. Patterns are a text with
// commas or a list. A rule without any of them applies if bare says so.
func readMatter(text string, bare bool) matter {
	var m matter
	always, key, patterns := "", "", "globs"
	if bare {
		patterns = "paths"
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if item, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "- "); ok && key == patterns {
			m.globs = append(m.globs, splitGlobs(item)...)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name != strings.TrimLeft(name, " \t") {
			continue
		}
		switch key = name; key {
		case patterns:
			m.globs = append(m.globs, splitGlobs(strings.Trim(strings.TrimSpace(value), "[]"))...)
		case "alwaysApply":
			always = strings.TrimSpace(value)
		}
	}
	m.globs = m.globs[:min(len(m.globs), maxGlobs)]
	everything := true // a list of nothing but ** is none
	for i, glob := range m.globs {
		m.globs[i] = strings.TrimSuffix(glob, "/**")
		everything = everything && (m.globs[i] == "" || m.globs[i] == "**")
	}
	if everything {
		m.globs = nil
	}
	m.applies = always == "true" || bare && len(m.globs) == 0
	m.manual = !m.applies && len(m.globs) == 0
	return m
}

// Bounds of the patterns of one rule.
const (
	maxGlobs = 1000
	maxGlob  = 4096
)

// splitGlobs splits a text at commas outside of braces, and expands these. A pattern whose braces cannot be expanded stays as
// it is.
func splitGlobs(text string) (globs []string) {
	for _, glob := range pathglob.Split(text) {
		glob = strings.Trim(glob, `"'`)
		if glob == "" || len(glob) > maxGlob || len(globs) > maxGlobs {
			continue
		}
		list, err := pathglob.Expand(glob, maxGlobs)
		if err != nil {
			list = []string{glob}
		}
		globs = append(globs, list...)
	}
	return globs
}
