package chain

import (
	"slices"
	"strings"
)

// fence follows the fenced and indented code of a Markdown text, line by line.
type fence struct {
	mark byte // of the fence that is open, or 0
	size int
}

func (f *fence) inside(line string) bool {
	return f.fenced(line) || isIndented(line)
}

// isIndented reports whether a line by itself is code.
func isIndented(line string) bool {
	bare := strings.TrimLeft(line, " ")
	return len(line)-len(bare) >= 4 || strings.HasPrefix(bare, "\t")
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
	list, html, prose bool // what the line before was in
}

type lineKind int

const (
	lineGoesOn lineKind = iota // of the paragraph before
	lineBegins                 // a block
	lineCode                   // code or HTML
)

func (b *blocks) next(line string) lineKind {
	bare := strings.TrimLeft(line, " \t")
	blank := strings.TrimSpace(bare) == ""
	open := b.mark != 0
	fenceLine := line
	if b.list && !open {
		fenceLine = bare // in an item, a fence is indented
	}
	switch {
	case open && b.list && b.fenced(bare), !open && b.fenced(fenceLine), open && b.fenced(line):
		b.prose = false
		return lineCode
	case blank:
		b.html, b.prose = false, false
		return lineBegins
	case b.html:
		return lineCode
	case !b.list && !b.prose && isIndented(line):
		return lineCode
	case !b.prose && isHTML(bare):
		b.html = true
		return lineCode
	}
	item := isItem(bare)
	if begins := item || strings.HasPrefix(bare, "#"); begins || !b.prose {
		b.list = item || b.list && bare != line
		b.prose = true
		return lineBegins
	}
	return lineGoesOn
}

func isItem(bare string) bool {
	marker := strings.TrimLeft(bare, "0123456789")
	if marker != bare {
		return strings.HasPrefix(marker, ". ") || strings.HasPrefix(marker, ") ")
	}
	return strings.HasPrefix(bare, "- ") || strings.HasPrefix(bare, "* ") || strings.HasPrefix(bare, "+ ")
}

// isHTML reports whether a line begins a block of HTML: with a tag by itself, or one of those that are blocks anyway.
// Comments are looked for elsewhere.
func isHTML(bare string) bool {
	if len(bare) < 3 || bare[0] != '<' || !isLetter(bare[1]) && bare[1] != '/' {
		return false
	}
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(bare[1:], "/")), ">")
	name, _, _ = strings.Cut(name, " ")
	isBlock := slices.Contains([]string{
		"article", "center", "details", "div", "dl", "footer", "header", "li", "main", "nav", "ol", "p", "section", "summary", "table", "td", "th", "tr", "ul",
	}, name)
	return isBlock || strings.IndexByte(bare, '>') == len(strings.TrimSpace(bare))-1
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
func withoutComments(text string) string {
	if !strings.Contains(text, "<!--") {
		return text
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
		comment := !unclosed && strings.HasPrefix(bare, "<!--") && b.mark == 0 && !b.html && (indent == 0 || indent < 4 && !b.list)
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
		if rest := dropComments(plain[at:end]); !isBlank(rest) {
			out.WriteString(rest)
		}
		b = blocks{}
		at = end
	}
	if out.Len() == len(plain) {
		return text
	}
	return out.String()
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

// readMatter understands the keys paths and globs, each a text with commas or a list, and Cursor's alwaysApply. A rule
// without any of them applies if bare says so.
func readMatter(text string, bare bool) matter {
	var m matter
	always, key := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if item, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "- "); ok && (key == "paths" || key == "globs") {
			m.globs = append(m.globs, splitGlobs(item)...)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name != strings.TrimLeft(name, " \t") {
			continue
		}
		switch key = name; key {
		case "paths", "globs":
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

// splitGlobs splits at commas outside of braces, and expands these.
func splitGlobs(text string) (globs []string) {
	depth, start := 0, 0
	for i := 0; i <= len(text) && len(globs) < maxGlobs; i++ {
		switch {
		case i == len(text) || text[i] == ',' && depth == 0:
			globs = append(globs, expandBraces(strings.Trim(strings.TrimSpace(text[start:i]), `"'`))...)
			start = i + 1
		case text[i] == '{':
			depth++
		case text[i] == '}':
			depth--
		}
	}
	return globs[:min(len(globs), maxGlobs)]
}

// expandBraces expands {a,b}. A pattern that would become too many stays as it is.
func expandBraces(glob string) []string {
	if glob == "" || len(glob) > maxGlob {
		return nil
	}
	done, left := []string{}, []string{glob}
	for len(left) > 0 {
		p := left[len(left)-1]
		left = left[:len(left)-1]
		before, rest, ok := strings.Cut(p, "{")
		inner, after, closed := strings.Cut(rest, "}")
		if !ok || !closed || inner == "" {
			done = append(done, p)
			continue
		}
		words := strings.Split(inner, ",")
		if len(done)+len(left)+len(words) > maxGlobs {
			return []string{glob}
		}
		for _, word := range slices.Backward(words) {
			left = append(left, before+strings.TrimSpace(word)+after)
		}
	}
	return done
}
