package recall

import (
	"cmp"
	_ "embed" // the words of talk
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of the work on a query, whatever its length.
const (
	window        = 4000 // characters that are read from each end
	maxVocabulary = 256  // different terms, at least half of them from the beginning if both ends have some
	MaxTerms      = 12   // terms that are searched for
)

// What a recall is made of. docs/MEMORY.md has what it finds with these.
const (
	k1, lengthShare = 0.9, 0.4 // the parameters k1 and b of BM25
	prior           = 50       // how many more items a store counts as having
	talkShare       = 0.6      // expected share of texts with a given word of talk
	guessWeight     = 0.65     // of a term that a misspelt word may stand for
	leadBoost       = 0.2      // is added to the factor of an item that begins with a term
	recencyBoost    = 0.2      // the most that recency adds to that factor, and
	useBoost        = 0.1      // the most that use adds
	minEvidence     = 0.7      // what the matched terms of an item must weigh
	tailShare       = 0.25     // share of the best score that others must reach
)

// share is the expected share of all texts that have a token.
func (t token) share() float64 {
	if isTalk(t.plain) || t.pair && isGrammar(t.plain) {
		return talkShare
	}
	return 0
}

//go:embed talk.txt
var talkFile string

//nolint:gochecknoglobals // an immutable table
var talkWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for line := range strings.Lines(talkFile) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for w := range strings.FieldsSeq(line) {
			words[w] = true
		}
	}
	return words
})

// isTalk reports whether a folded word is talk rather than a subject: the function words of seven languages, and what
// people say to an assistant around what they want. Unlike stop words they are indexed and searched for, with the
// weight of a word that three in ten texts have, but they are not evidence.
func isTalk(w string) bool { return talkWords()[w] }

// isGrammar reports whether a pair of characters is hiragana, in which Japanese writes endings, particles and forms
// of politeness.
func isGrammar(pair string) bool {
	return !strings.ContainsFunc(pair, func(c rune) bool { return c < 0x3041 || c > 0x309F })
}

// Query is an utterance analysed by [Read]. The zero value asks for nothing. It is immutable.
type Query struct {
	words  []token        // with different terms, in the order of first occurrence
	counts map[string]int // of each term
	exact  bool           // takes no word for a misspelt one
}

// Read analyses an utterance. Of a long one it reads the first and the last 4,000 characters, and keeps at most 256
// terms.
func Read(utterance string) Query {
	q := Query{counts: map[string]int{}}
	head, tail := windows(utterance)
	first, last := q.collect(head), q.collect(tail)
	first = first[:min(len(first), maxVocabulary-min(len(last), maxVocabulary/2))]
	last = last[len(last)-min(len(last), maxVocabulary-len(first)):]
	q.words = slices.Concat(first, last)
	return q
}

// collect counts the tokens of a text and returns those with new terms.
func (q Query) collect(text string) []token {
	var found []token
	for t := range tokens(text) {
		if q.counts[t.term]++; q.counts[t.term] == 1 {
			found = append(found, t)
		}
	}
	return found
}

func windows(s string) (head, tail string) {
	head = clip(s, window)
	rest := s[len(head):]
	if len(rest) > utf8.UTFMax*window {
		rest = rest[len(rest)-utf8.UTFMax*window:]
	}
	if n := utf8.RuneCountInString(rest); n > window {
		rest = rest[len(clip(rest, n-window)):]
	} else if len(s) == len(head)+len(rest) {
		return s, "" // the two ends meet
	}
	return head, rest
}

// Vocabulary returns the different terms of the query, at most 256, in the order of first occurrence. [Terms] needs
// their document frequencies.
func (q Query) Vocabulary() []string {
	terms := make([]string, 0, len(q.words))
	for _, t := range q.words {
		terms = append(terms, t.term)
	}
	return terms
}

// Stats are the statistics of the items in view.
type Stats struct {
	Docs   int     // the number of items
	AvgLen float64 // the mean of the lengths that [Index] returned for them
	// DF says how many items have a term. Only terms of [Query.Vocabulary] and with
	// [Query.Prefixes] are needed.
	DF map[string]int
}

// Term is a term to search for.
type Term struct {
	Text   string
	Weight float64 // from 0 to 1, for a term that one item has
	Talk   bool    // a word of talk orders items and is not evidence for one
}

// Terms returns the terms of a query that items have, at most [MaxTerms]: the rarest first, then those that the query
// has more often, then in the order in which they occur.
func Terms(q Query, s Stats) []Term {
	type weighed struct {
		Term

		items float64
	}
	docs := float64(max(s.Docs, 0)) + prior
	var found []weighed
	add := func(term string, items int, share, factor float64) {
		n := max(float64(items)+share*prior, share*docs)
		found = append(found, weighed{Term{Text: term, Weight: factor * rarity(n, docs) / rarity(1, docs), Talk: share > 0}, n})
	}
	for _, t := range q.words {
		if items := s.DF[t.term]; items > 0 {
			add(t.term, items, t.share(), 1)
		}
	}
	for _, t := range q.misspelt(s) {
		term, items := t.guess(s.DF)
		if items > 0 && !slices.ContainsFunc(found, func(w weighed) bool { return w.Text == term }) {
			add(term, items, 0, guessWeight)
		}
	}
	slices.SortStableFunc(found, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(a.items, b.items), cmp.Compare(q.counts[b.Text], q.counts[a.Text]))
	})
	terms := make([]Term, 0, MaxTerms)
	for _, w := range found[:min(len(found), MaxTerms)] {
		terms = append(terms, w.Term)
	}
	return terms
}

// rarity is the inverse document frequency in its form that is never negative, also for damaged statistics.
func rarity(items, docs float64) float64 {
	docs = max(docs, 1)
	items = min(items, docs)
	return math.Log1p((docs - items + 0.5) / (items + 0.5))
}
