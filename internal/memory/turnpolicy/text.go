package turnpolicy

import (
	"bytes"
	"math"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/grapnelhq/grapnel/sdk"
)

// Characters that are read from each end of a text.
const lookHead, lookTail = 4_000, 4_000

type window struct {
	text  string
	fence string // the mark that ends the block of code in which it begins, if any
	torn  bool   // begins inside a sentence
}

// windows returns the parts of a text that are read: all of a short one, and the two ends of a long one. Between
// them, only the lines that begin or end blocks of code matter.
func windows(text string) []window {
	if utf8.RuneCountInString(text) <= lookHead+lookTail {
		return []window{{text: text}}
	}
	head := sdk.LongestPrefix(text, math.MaxInt, lookHead)
	tail := len(text)
	for range lookTail {
		_, size := utf8.DecodeLastRuneInString(text[:tail])
		tail -= size
	}
	return []window{{text: head}, {text: text[tail:], fence: fenceAfter(text[:tail]), torn: text[tail-1] != '\n'}}
}

// fenceAfter returns the mark that ends the block of code in which a text ends; "" means none.
func fenceAfter(text string) (open string) {
	for line := range strings.SplitSeq(text, "\n") {
		open = fence(line, open)
	}
	return open
}

// fence returns the mark that ends the block of code of the next line, given the mark of this line; "" means none.
func fence(line, open string) string {
	line = strings.TrimLeft(line, " \t")
	switch {
	case open == "" && strings.HasPrefix(line, "```"):
		return "```"
	case open == "" && strings.HasPrefix(line, "~~~"):
		return "~~~"
	case open != "" && strings.HasPrefix(line, open):
		return ""
	}
	return open
}

type folded struct {
	text string
	// at has the offset in the source for each byte, and its length at the end.
	at []int32
}

// fold makes equivalent texts alike: lower case, no accents, ASCII for full-width letters and signs, one kind of
// quote, space and dash, nothing invisible. Invalid UTF-8 becomes U+FFFD.
func fold(source string) folded {
	var b strings.Builder
	b.Grow(len(source))
	at := make([]int32, 0, len(source)+1)
	for i, r := range source {
		from := b.Len()
		if r < utf8.RuneSelf {
			b.WriteByte(foldASCII(source[i]))
		} else {
			b.WriteString(foldRune(r))
		}
		for range b.Len() - from {
			at = append(at, int32(i)) //nolint:gosec // a window has a few thousand characters
		}
	}
	at = append(at, int32(len(source))) //nolint:gosec // as above
	return folded{b.String(), at}
}

// foldASCII lowers letters and makes controls spaces, among them the byte for blanked text.
func foldASCII(c byte) byte {
	switch {
	case c == '\n':
		return c
	case c < ' ' || c == 0x7f:
		return ' '
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

func foldRune(r rune) string {
	switch {
	case r >= 0xff01 && r <= 0xff5e: // full-width forms of ASCII
		return string(rune(foldASCII(byte(r - 0xfee0))))
	case r >= 0x300 && r <= 0x36f, unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		return "" // combining accents and invisible characters
	case unicode.Is(unicode.Zs, r):
		return " "
	}
	r = unicode.ToLower(r)
	if plain := typed()[r]; plain != "" {
		return plain
	}
	if r < 0x250 { // Latin letters lose their accents
		base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		return string(base)
	}
	return string(r)
}

//nolint:gochecknoglobals // an immutable table
var typed = sync.OnceValue(func() map[rune]string {
	plain := map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'ı': "i"}
	for to, from := range map[string]string{"'": "‘’‛ʼ′", `"`: "“”„‟″", "-": "‐‑‒", "—": "–—―"} {
		for _, r := range from {
			plain[r] = to
		}
	}
	return plain
})

// blanked replaces each byte of code and quotations. A folded text has no such byte.
const blanked = 0x1a

const (
	maxQuote = 1_000 // bytes; a mark without an end so far begins no quotation
	maxTicks = 4
)

// blank blanks code and quotations in a folded text of the same length. Line breaks stay. open is the mark that ends the
// block of code in which the text begins, if any.
func blank(text, open string) string {
	b := []byte(text)
	from := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		next := fence(line, open)
		// Lines that quote a mail, comments and headings are not the user's own words either.
		first := strings.TrimLeft(line, " ")
		if open != "" || next != "" || strings.HasPrefix(first, ">") || strings.HasPrefix(first, "//") || strings.HasPrefix(first, "#") {
			fill(b[from : from+len(line)])
		}
		open = next
		from += len(line)
	}
	blankSpans(b)
	return string(b)
}

func fill(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = blanked
		}
	}
}

func blankSpans(b []byte) {
	for i := 0; i < len(b); {
		end := spanEnd(b, i)
		if end < 0 {
			i++
			continue
		}
		stop := sentenceEnd(b, end)
		fill(b[i:end])
		if stop != 0 {
			b[end-1] = stop
		}
		i = end
	}
}

// spanEnd returns where the span that begins at i ends, or -1 without one.
func spanEnd(b []byte, i int) int {
	switch c := b[i]; {
	case c == '`':
		n := 1
		for n < maxTicks && i+n < len(b) && b[i+n] == '`' {
			n++
		}
		return after(b, i+n, string(b[i:i+n]))
	case c == '"' && opens(b, i):
		return after(b, i+1, `"`)
	case c == '\'' && opens(b, i):
		return apostrophe(b, i+1)
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRune(b[i:])
		pairs := []rune("«»»«「」『』《》") // »…« is the German and Danish way
		for p := 0; p < len(pairs); p += 2 {
			if r == pairs[p] {
				return after(b, i+size, string(pairs[p+1]))
			}
		}
	}
	return -1
}

// opens reports whether the mark at i can begin a quotation: not after a letter, except in scripts without spaces,
// and not before a space.
func opens(b []byte, i int) bool {
	before, _ := utf8.DecodeLastRune(b[:i])
	next, _ := utf8.DecodeRune(b[i+1:])
	free := i == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before) || unicode.In(before, unicode.Han, unicode.Hiragana, unicode.Katakana)
	return free && i+1 < len(b) && !unicode.IsSpace(next)
}

// after returns the end of the first closing mark from i on, if it is near and in the same paragraph.
func after(b []byte, i int, closing string) int {
	near := b[i:min(len(b), i+maxQuote)]
	n := bytes.Index(near, []byte(closing))
	if n <= 0 || bytes.Contains(near[:n], []byte("\n\n")) {
		return -1
	}
	return i + n + len(closing)
}

// apostrophe is after for a mark that words have too: it closes only at the end of a word.
func apostrophe(b []byte, i int) int {
	for j := i + 1; j < min(len(b), i+maxQuote); j++ {
		if b[j] == '\n' && b[j-1] == '\n' {
			return -1
		}
		if b[j] != '\'' || b[j-1] == ' ' {
			continue
		}
		if next, _ := utf8.DecodeRune(b[j+1:]); !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return j + 1
		}
	}
	return -1
}

// sentenceEnd returns the sign that ends a sentence together with the quotation that ends at end, or 0.
func sentenceEnd(b []byte, end int) byte {
	if end < 2 || end < len(b) && b[end] != ' ' && b[end] != '\n' {
		return 0
	}
	_, size := utf8.DecodeLastRune(b[:end])
	if c := b[end-size-1]; c == '.' || c == '!' || c == '?' {
		return c
	}
	return 0
}

// maxSentence bounds a sentence, in bytes; a longer one continues as another.
const maxSentence = 2_400

// span is a part of a text, by bytes.
type span struct{ from, to int }

func (s span) in(text string) string { return text[s.from:s.to] }

// after moves a span by n bytes; an empty one stays empty.
func (s span) after(n int) span {
	if s == (span{}) {
		return s
	}
	return span{s.from + n, s.to + n}
}

// sentences returns the sentences of a folded, blanked text, with their final signs and without what precedes their
// first word: spaces, list marks, opening signs.
func sentences(text string) []span {
	var all []span
	from := 0
	add := func(to int) {
		s := span{from, to}
		s.to -= len(s.in(text)) - len(strings.TrimRight(s.in(text), " \n"))
		s.from += len(s.in(text)) - len(strings.TrimLeftFunc(s.in(text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != blanked
		}))
		if s.from < s.to {
			all = append(all, s)
		}
		from = to
	}
	for i := 0; i < len(text); {
		size := stop(text, i)
		if size == 0 && i-from >= maxSentence && utf8.RuneStart(text[i]) {
			add(i)
		}
		i += max(1, size)
		if size > 0 {
			add(i)
		}
	}
	add(len(text))
	return all
}

// stop returns the length of the signs that end a sentence at i, or 0. Full stops, and signs that scripts without
// spaces share with others, need a space or the end of the line after them.
func stop(text string, i int) int {
	switch c := text[i]; {
	case c == '\n':
		return 1
	case c == '.' || c == '!' || c == '?':
		n := 1
		for i+n < len(text) && strings.IndexByte(".!?", text[i+n]) >= 0 {
			n++
		}
		next, _ := utf8.DecodeRuneInString(text[i+n:])
		switch {
		case i+n == len(text) || unicode.IsSpace(next):
			if c == '.' && n == 1 && abbreviated(text[:i]) {
				return 0
			}
			return n
		case c != '.' && next >= utf8.RuneSelf: // 记住！我 has no space
			return n
		}
	case strings.HasPrefix(text[i:], "。"):
		return len("。")
	}
	return 0
}

// abbreviated reports whether a full stop after the text belongs to its last word.
func abbreviated(text string) bool {
	word := text[strings.LastIndexAny(text, " \n(")+1:]
	switch word {
	case "e.g", "i.e", "etc", "vs", "mr", "mrs", "ms", "dr", "prof", "st", "no", "nr", "z.b", "d.h", "bzw", "ca", "sr", "sra", "p.s", "approx":
		return true
	}
	return len(word) == 1 && unicode.IsLetter(rune(word[0]))
}

// listed returns the items that follow a sentence ending with ":": the sentences after it up to the next paragraph.
func listed(text string, all []span, i int) []span {
	end := min(i+2, len(all))
	for end < len(all) && strings.Count(text[all[end-1].to:all[end].from], "\n") < 2 {
		end++
	}
	return all[i+1 : end]
}
