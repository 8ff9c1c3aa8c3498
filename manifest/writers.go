package manifest

import (
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/phases"
)

// Writers returns who wrote a sentence in the section's rendered text, in order: the owners of the spans that it
// stands in, all of them if it stands there several times. Blanks and line ends count as one blank. It is empty if the sentence
// is not there.
func (s *Section) Writers(rendered, sentence string) []string {
	body, offset := rendered, 0
	if heading := "## " + s.Title + "\n\n"; s.Placement == phases.PlacementSystem {
		if rest, found := strings.CutPrefix(rendered, heading); found {
			body = rest
		}
	}
	text, places := squeezed(body)
	wanted, _ := squeezed(strings.TrimSpace(sentence))
	var owners []string
	for len(wanted) > 0 {
		at := indexRunes(text[offset:], wanted)
		if at < 0 {
			break
		}
		from := offset + at
		offset = from + len(wanted)
		owners = append(owners, s.ownersOf(places[from], places[offset-1]+1)...)
	}
	if len(owners) == 0 && strings.Contains(strings.Join(strings.Fields(rendered), " "), string(wanted)) {
		return []string{s.Owner} // in the heading
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// ownersOf returns the owners of a piece of the text. Separators count only if they are all there is.
func (s *Section) ownersOf(from, to int) []string {
	var owners, separators []string
	for _, span := range s.ContentMap {
		switch {
		case span.Offset+span.Length <= from || span.Offset >= to:
		case span.Owner == phases.OwnerBuiltin:
			separators = append(separators, span.Owner)
		default:
			owners = append(owners, span.Owner)
		}
	}
	if len(owners) == 0 {
		return separators
	}
	return owners
}

// squeezed is a text with one blank for each run of white space, and where each of its characters stood.
func squeezed(s string) (text []rune, places []int) {
	for i, c := range []rune(s) {
		if unicode.IsSpace(c) {
			c = ' '
			if len(text) > 0 && text[len(text)-1] == ' ' {
				continue
			}
		}
		text, places = append(text, c), append(places, i)
	}
	return text, places
}

func indexRunes(text, wanted []rune) int {
	at := strings.Index(string(text), string(wanted))
	if at < 0 {
		return -1
	}
	return len([]rune(string(text)[:at]))
}
