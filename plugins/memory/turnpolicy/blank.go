package turnpolicy

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// blanked is the byte that stands for each byte of what the user did not say: code
// and quotations. Folding leaves no such byte in a text.
const blanked = 0x1a

// maxQuote bounds a quotation, in bytes. A mark that is not closed so far is none.
const maxQuote = 1_000

// maxTicks is how many backticks may begin a span of code.
const maxTicks = 4

// blank returns a folded text of the same length in which code and quotations are
// blanked. Line breaks stay. inFence says that the text begins in a block of code.
func blank(text string, inFence bool) string {
	b := []byte(text)
	open := ""
	if inFence {
		open = openFence(text)
	}
	from := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		next := fence(line, open)
		if open != "" || next != "" || foreign(line) {
			fill(b[from : from+len(line)])
		}
		open = next
		from += len(line)
	}
	blankSpans(b)
	return string(b)
}

// openFence guesses the mark of a block that begins before the text: the one that
// the text has first.
func openFence(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if mark := fence(line, ""); mark != "" {
			return mark
		}
	}
	return "```"
}

// foreign reports whether a line is none of the user's own: it quotes a mail, or is
// a comment or a heading.
func foreign(line string) bool {
	line = strings.TrimLeft(line, " ")
	return strings.HasPrefix(line, ">") || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "#")
}

// fill blanks all but line breaks.
func fill(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = blanked
		}
	}
}

// blankSpans blanks code and quotations inside lines and paragraphs.
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

// spanEnd returns where the span that begins at i ends, or -1 if none does.
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
		if closing := partner(r); closing != "" {
			return after(b, i+size, closing)
		}
	}
	return -1
}

// partner returns the mark that ends a quotation; "" is that r begins none.
func partner(r rune) string {
	switch r {
	case '«':
		return "»"
	case '»': // the German and Danish way
		return "«"
	case '「':
		return "」"
	case '『':
		return "』"
	case '《':
		return "》"
	}
	return ""
}

// opens reports whether the mark at i can begin a quotation: what is before it is no
// letter, unless of a script without spaces, and what is after it is no space.
func opens(b []byte, i int) bool {
	before, _ := utf8.DecodeLastRune(b[:i])
	next, _ := utf8.DecodeRune(b[i+1:])
	free := i == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before) || unicode.In(before, unicode.Han, unicode.Hiragana, unicode.Katakana)
	return free && i+1 < len(b) && !unicode.IsSpace(next)
}

// after returns the end of the first closing mark from i on, if it is near and in
// the same paragraph.
func after(b []byte, i int, closing string) int {
	near := b[i:min(len(b), i+maxQuote)]
	n := bytes.Index(near, []byte(closing))
	if n <= 0 || bytes.Contains(near[:n], []byte("\n\n")) {
		return -1
	}
	return i + n + len(closing)
}

// apostrophe is after for a mark that is also a letter's: it closes only between a
// word and what is none.
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

// sentenceEnd returns the sign that ends a sentence together with the quotation
// whose end is given, so that the one after it begins anew; 0 is none.
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
