package recall

import (
	"slices"
	"unicode/utf8"
)

// Bounds of the work on a query, whatever its length.
const (
	// window is how many characters are read from the beginning of a query, and as
	// many from its end.
	window = 4000
	// maxVocabulary is how many different terms a query is taken to have, at least
	// half of them from its beginning if they come from both.
	maxVocabulary = 256
)

// Query is what a user said, taken apart. It is made by [Read]; the zero value is a
// query that asks for nothing. It is immutable.
type Query struct {
	tuning tuning
	// words are the tokens with different terms, in the order of first occurrence.
	words []token
	// counts says how often each term occurs.
	counts map[string]int
}

// Read takes an utterance apart. Of a long one it reads the first and the last 4,000
// characters, and keeps at most 256 terms.
func Read(utterance string) Query { return read(utterance, tuned()) }

// read is Read with given numbers.
func read(utterance string, with tuning) Query {
	q := Query{tuning: with, counts: map[string]int{}}
	head, tail := windows(utterance)
	first := q.collect(head)
	last := q.collect(tail)
	first = first[:min(len(first), maxVocabulary-min(len(last), maxVocabulary/2))]
	last = last[len(last)-min(len(last), maxVocabulary-len(first)):]
	q.words = slices.Concat(first, last)
	return q
}

// collect counts the tokens of a text and returns those with terms that are new.
func (q Query) collect(text string) []token {
	var found []token
	tokens(text, q.tuning, func(t token) {
		if q.counts[t.term]++; q.counts[t.term] == 1 {
			found = append(found, t)
		}
	})
	return found
}

// windows returns the parts of an utterance that are read.
func windows(s string) (head, tail string) {
	if len(s) <= 2*window {
		return s, ""
	}
	head = clip(s, window)
	at := len(s)
	for n := 0; n < window && at > len(head); n++ {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	if at <= len(head) {
		return s, ""
	}
	return head, s[at:]
}

// Vocabulary returns the different terms of the query, at most 256, in the order in
// which they first occur. [Terms] needs the document frequencies of these.
func (q Query) Vocabulary() []string {
	terms := make([]string, 0, len(q.words))
	for _, t := range q.words {
		terms = append(terms, t.term)
	}
	return terms
}
