package recall

import "strings"

// Index returns the terms of a text with the number of times that each occurs, and
// the text's length: how many there are in all. Both are what a [Candidate] needs and
// what a store keeps of an item. The map is new and never nil.
//
// A later version of this package may find other terms. A store that keeps what Index
// gave notes [Version] beside it and indexes again when that has changed.
func Index(text string) (counts map[string]int, length int) { return index(text, tuned()) }

// Version is that of the rules by which terms are made.
const Version = 1

// index is Index with given numbers.
func index(text string, with tuning) (counts map[string]int, length int) {
	counts = map[string]int{}
	tokens(text, with, func(t token) {
		counts[t.term]++
		length++
	})
	return counts, length
}

// Key returns a text normalised so that two texts which a reader takes for the same
// have one key: folded, blanks as one space, without what is around the words.
// Punctuation and order between them count: C++ and C# differ.
func Key(text string) string {
	return strings.Trim(strings.Join(strings.Fields(fold(text)), " "), " .!?…。·•*-–—\"'“”„‘’")
}
