package turnpolicy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSentence bounds a sentence, in bytes; a longer one goes on as another.
const maxSentence = 2_400

// span is a part of a text, by bytes.
type span struct{ from, to int }

// in returns the part.
func (s span) in(text string) string { return text[s.from:s.to] }

// sentences returns the sentences of a folded, blanked text, with the signs that end
// them and without what stands before their first word: spaces, list marks, opening
// signs.
func sentences(text string) []span {
	var all []span
	from := 0
	add := func(to int) {
		s := span{from, to}
		s.to -= len(s.in(text)) - len(strings.TrimRight(s.in(text), " \n"))
		s.from += len(s.in(text)) - len(strings.TrimLeftFunc(s.in(text), leading))
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

// leading reports whether a character can only stand before a sentence.
func leading(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != blanked
}

// stop returns the length of what ends a sentence at i, or 0. Full stops, and the
// signs that scripts without spaces share with others, need a space or the end of
// the line after them.
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

// atEdge reports whether the sentence i of n stands where people put what they wish
// of the assistant: at the beginning or at the end.
func atEdge(i, n int) bool {
	const edge = 6
	return i < edge || i >= n-edge
}

// listed returns the items that follow a sentence ending with ":": the sentences
// after it up to the next paragraph.
func listed(text string, all []span, i int) []span {
	var items []span
	for _, s := range all[i+1:] {
		before := text[all[i].to:s.from]
		if len(items) > 0 {
			before = text[items[len(items)-1].to:s.from]
		}
		if strings.Count(before, "\n") > 1 && len(items) > 0 {
			break
		}
		items = append(items, s)
	}
	return slices.Clip(items)
}
