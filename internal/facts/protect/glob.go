package protect

import (
	"path"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

// Glob returns a pattern whose files a shell's glob is likely to be meant for: some name matches both, and two fifths
// of the pattern's letters are in both, or the glob names the directory that the pattern does. ".e*" is meant for ".env", "*.json" is not meant for
// "service-account*.json".
func (s *Set) Glob(glob string) (string, bool) {
	elem := fold(path.Base(strings.TrimRight(glob, "/")))
	for i := range s.deny {
		p := &s.deny[i]
		want := p.elems[len(p.elems)-1].text
		within := len(p.elems) > 1 && strings.Contains(fold(glob), p.elems[0].text+"/")
		if len(p.elems) > 1 && (p.dir || p.rooted || !within) {
			continue
		}
		same := common(elem, want)
		if (within && same >= 0 || same > 1 && same*5 >= letters(want)*2) && !hidden(elem, want) {
			return p.text, true
		}
	}
	return "", false
}

// hidden reports whether a wildcard would have to match a leading dot, which no shell does unasked.
func hidden(glob, name string) bool {
	return strings.HasPrefix(name, ".") && !strings.HasPrefix(glob, ".") && !strings.HasPrefix(glob, string(shell.Unknown))
}

func letters(glob string) int {
	n := 0
	for _, r := range glob {
		if !isStar(r) && !isAny(r) {
			n++
		}
	}
	return n
}

func isStar(r rune) bool { return r == '*' || r == shell.Star || r == shell.Unknown }
func isAny(r rune) bool  { return r == '?' || r == shell.Any }

// common returns how many letters two globs have in common in a name that both match, at the most; -1 if no name
// matches both. Its work is the product of their lengths, of which the first 256 letters count.
func common(a, b string) int {
	x, y := []rune(a), []rune(b)
	x, y = x[:min(len(x), 256)], y[:min(len(y), 256)]
	// row[j] is for x[i:] and y[j:], below[j] for x[i+1:]; rows are made from the last to the first.
	row, below := make([]int, len(y)+1), make([]int, len(y)+1)
	for i := len(x); i >= 0; i-- {
		for j := len(y); j >= 0; j-- {
			row[j] = -1
			if i == len(x) && j == len(y) {
				row[j] = 0
			}
			if i < len(x) && isStar(x[i]) {
				row[j] = below[j]
				if j < len(y) {
					row[j] = max(row[j], row[j+1])
				}
			}
			if j < len(y) && isStar(y[j]) {
				row[j] = max(row[j], row[j+1])
				if i < len(x) {
					row[j] = max(row[j], below[j])
				}
			}
			if i < len(x) && j < len(y) && below[j+1] >= 0 {
				switch {
				case isAny(x[i]), isAny(y[j]):
					row[j] = max(row[j], below[j+1])
				case x[i] == y[j] && !isStar(x[i]):
					row[j] = max(row[j], below[j+1]+1)
				}
			}
		}
		row, below = below, row
	}
	return below[0]
}

// Match reports whether a shell's glob matches a name.
func Match(glob, name string) bool {
	return (!strings.HasPrefix(name, ".") || strings.HasPrefix(glob, ".")) && common(fold(glob), literal.Replace(fold(name))) >= 0
}

// literal keeps the letters of a name from being wildcards.
//
//nolint:gochecknoglobals // a constant
var literal = strings.NewReplacer("*", "\uFFFD", "?", "\uFFFD")
