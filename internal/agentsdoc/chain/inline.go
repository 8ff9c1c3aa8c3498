package chain

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inline is what stands within a paragraph of Markdown.
type inline struct {
	out    []byte // the paragraph, masked
	item   bool   // of a list
	text   string
	last   map[int]int // the last run of backquotes of each length
	runs   []run       // of backquotes, from where the scan is
	links  []int       // "[" that may begin links, or "![" images
	opened [2][]run    // marks "*" and "_" that may begin emphasis

	uncommented bool // no comment ends from here on
	unlinked    int  // no target of a link ends before this
}

// tag matches tags and links between angle brackets.
var tag = regexp.MustCompile(`^<(?:/?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?|[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*)>`)

// maskInline masks what is not text within a paragraph: code, comments, tags, escaped marks, images, where links lead,
// and the marks of emphasis and links. In an item of a list Claude Code searches code and comments, too.
func maskInline(b []byte, item bool) {
	in := inline{out: b, item: item, text: string(b), last: map[int]int{}, runs: backquotes(string(b))}
	for _, r := range in.runs {
		in.last[r.end-r.start] = r.start
	}
	for at := 0; at < len(in.text); {
		switch in.text[at] {
		case '\\':
			at = in.escape(at)
		case '`':
			at = in.code(at)
		case '<':
			at = in.tag(at)
		case '[':
			in.links = append(in.links, at)
			at++
		case ']':
			at = in.link(at)
		case '*', '_':
			at = in.emphasis(at)
		default:
			at++
		}
	}
}

func (in *inline) escape(at int) int {
	if at+1 < len(in.text) && in.text[at+1] < utf8.RuneSelf && isMark(rune(in.text[at+1])) {
		clear(in.out[at : at+2])
		return at + 2
	}
	return at + 1
}

// isMark reports whether a character is punctuation to Markdown.
func isMark(c rune) bool { return unicode.IsPunct(c) || unicode.IsSymbol(c) }

// code masks a span, which ends with as many backquotes as it begins with.
func (in *inline) code(at int) int {
	for in.runs[0].end <= at {
		in.runs = in.runs[1:]
	}
	size := in.runs[0].end - at
	if in.last[size] <= at {
		return in.runs[0].end
	}
	i := 1
	for in.runs[i].end-in.runs[i].start != size {
		i++
	}
	end := in.runs[i].end
	switch {
	case !in.item:
		clear(in.out[at:end])
	case strings.HasPrefix(in.text[end:], "@"):
		clear(in.out[end-1 : end])
	}
	return end
}

func (in *inline) tag(at int) int {
	rest := in.text[at:]
	size := 0
	switch {
	case !strings.HasPrefix(rest, "<!--"):
		size = len(tag.FindString(rest[:min(len(rest), maxPath)]))
	case in.uncommented:
	default:
		if size = strings.Index(rest, "-->") + len("-->"); size < len("-->") {
			in.uncommented, size = true, 0
		}
	}
	if size == 0 {
		return at + 1
	}
	if !in.item || !strings.HasPrefix(rest, "<!--") {
		clear(in.out[at : at+size])
	}
	return at + size
}

// link masks where the link that ends here leads, and its marks; of an image, all.
func (in *inline) link(at int) int {
	if len(in.links) == 0 {
		return at + 1
	}
	start := in.links[len(in.links)-1]
	in.links = in.links[:len(in.links)-1]
	target, ok := strings.CutPrefix(in.text[at:min(len(in.text), at+maxPath)], "](")
	if !ok || at < in.unlinked {
		return at + 1
	}
	size := strings.IndexAny(target, ")\n")
	if size < 0 || target[size] != ')' {
		in.unlinked = at + cmp.Or(max(size, 0), len(target))
		return at + 1
	}
	end := at + len("](") + size + 1
	if start > 0 && in.text[start-1] == '!' {
		clear(in.out[start-1 : end])
		return end
	}
	clear(in.out[start : start+1])
	clear(in.out[at:end])
	return end
}

// emphasis takes a run of marks: it ends what those of the same kind began, or begins something.
func (in *inline) emphasis(at int) int {
	mark := in.text[at]
	end := at
	for end < len(in.text) && in.text[end] == mark {
		end++
	}
	begins, ends := in.flanks(at, end)
	own := 0
	if mark == '_' {
		own = 1
	}
	left := run{at, end}
	for ends && left.start < left.end && len(in.opened[own]) > 0 {
		top := &in.opened[own][len(in.opened[own])-1]
		size := min(top.end-top.start, left.end-left.start)
		clear(in.out[top.end-size : top.end])
		clear(in.out[left.start : left.start+size])
		left.start += size
		in.drop(1-own, top.start)
		if top.end -= size; top.end == top.start {
			in.opened[own] = in.opened[own][:len(in.opened[own])-1]
		}
	}
	if begins && left.start < left.end {
		in.opened[own] = append(in.opened[own], left)
	}
	return end
}

// flanks reports whether a run of marks may begin emphasis, or end it.
func (in *inline) flanks(at, end int) (begins, ends bool) {
	before, _ := utf8.DecodeLastRuneInString(in.text[:at])
	after, _ := utf8.DecodeRuneInString(in.text[end:])
	spaceBefore, spaceAfter := at == 0 || unicode.IsSpace(before), end == len(in.text) || unicode.IsSpace(after)
	begins = !spaceAfter && (!isMark(after) || spaceBefore || isMark(before))
	ends = !spaceBefore && (!isMark(before) || spaceAfter || isMark(after))
	if in.text[at] == '_' { // not within a word
		return begins && (!ends || isMark(before)), ends && (!begins || isMark(after))
	}
	return begins, ends
}

// drop forgets the marks of a kind behind a place: they stand within an emphasis that has ended.
func (in *inline) drop(kind, behind int) {
	for n := len(in.opened[kind]); n > 0 && in.opened[kind][n-1].start > behind; n-- {
		in.opened[kind] = in.opened[kind][:n-1]
	}
}
