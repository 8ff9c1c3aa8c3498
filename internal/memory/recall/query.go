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
	maxGuessed    = 3    // words that count as misspelt
	minMisspelt   = 5    // their length: a short word has too many neighbours
	maxMisspelt   = 14   // and a long one costs too much
)

// tuning has the numbers of recall. The test of retrieval switches each off to show its worth.
type tuning struct {
	k1, b        float64 // the parameters of BM25
	stems        bool    // words are indexed by their stems
	prior        float64 // how many more items a store counts as having
	talk         float64 // expected share of texts with a given word of talk
	guess        float64 // weight of a term that a misspelt word may stand for
	recency, use float64 // the most that each adds to the factor of a score
	evidence     float64 // what the matched terms of an item must weigh
	tail         float64 // share of the best score that others must reach
}

func tuned() tuning {
	return tuning{
		k1: 1.2, b: 0.75, stems: true, prior: 50, talk: 0.3, guess: 0.8,
		recency: 0.2, use: 0.1, evidence: 0.7, tail: 0.25,
	}
}

func (t tuning) term(plain string) string {
	if t.stems {
		return stem(plain)
	}
	return plain
}

func (t tuning) share(tok token) float64 {
	if isTalk(tok.plain) || tok.kind == gram && isGrammar(tok.plain) {
		return t.talk
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
	tuning tuning
	words  []token        // with different terms, in the order of first occurrence
	counts map[string]int // of each term
}

// Read analyses an utterance. Of a long one it reads the first and the last 4,000 characters, and keeps at most 256
// terms.
func Read(utterance string) Query { return read(utterance, tuned()) }

func read(utterance string, with tuning) Query {
	q := Query{tuning: with, counts: map[string]int{}}
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
	tokens(text, q.tuning, func(t token) {
		if q.counts[t.term]++; q.counts[t.term] == 1 {
			found = append(found, t)
		}
	})
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

// Guesses returns the terms that misspelt words of the query may stand for: one letter too many, too few, wrong, or
// swapped with its neighbour, after a correct first letter. It takes the longest three words that no item of the
// store has, and returns at most about 2,200 terms. Their document frequencies in s.DF let [Terms] choose.
func (q Query) Guesses(s Stats) []string {
	var terms []string
	for _, t := range q.misspelt(s) {
		terms = append(terms, q.neighbours(t.plain)...)
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

func (q Query) misspelt(s Stats) []token {
	words := slices.DeleteFunc(slices.Clone(q.words), func(t token) bool {
		spellable := len(t.plain) >= minMisspelt && len(t.plain) <= maxMisspelt && strings.Trim(t.plain, "abcdefghijklmnopqrstuvwxyz") == ""
		return !spellable || s.DF[t.term] > 0 || t.kind != word || q.tuning.share(t) != 0 || q.tuning.guess == 0
	})
	slices.SortStableFunc(words, func(a, b token) int { return cmp.Compare(len(b.plain), len(a.plain)) })
	return words[:min(len(words), maxGuessed)]
}

// neighbours returns the sorted terms of the words at distance one from w.
func (q Query) neighbours(w string) []string {
	variants := make([]string, 0, 54*len(w))
	add := func(variant string) { variants = append(variants, variant) }
	for i := 1; i <= len(w); i++ {
		for c := 'a'; c <= 'z'; c++ {
			add(w[:i] + string(c) + w[i:])
			if i < len(w) {
				add(w[:i] + string(c) + w[i+1:])
			}
		}
		if i < len(w) {
			add(w[:i] + w[i+1:])
		}
		if i+1 < len(w) {
			add(w[:i] + w[i+1:i+2] + w[i:i+1] + w[i+2:])
		}
	}
	slices.Sort(variants)
	var terms []string
	for _, v := range slices.Compact(variants) {
		if !isTalk(v) {
			terms = append(terms, q.tuning.term(v))
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// covers reports whether the query has all of the terms that items have.
func (q Query) covers(df map[string]int) bool {
	for term, items := range df {
		if items > 0 && q.counts[term] == 0 && term != "" && classOf([]rune(term)[0]) != between {
			return false
		}
	}
	return true
}

// Stats are the statistics of the items in view.
type Stats struct {
	Docs   int     // the number of items
	AvgLen float64 // the mean of the lengths that [Index] returned for them
	// DF says how many items have a term. Only terms of [Query.Vocabulary] and [Query.Guesses] are needed.
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
	docs := float64(max(s.Docs, 0)) + q.tuning.prior
	var found []weighed
	add := func(term string, share, factor float64, items int) {
		n := max(float64(items)+share*q.tuning.prior, share*docs)
		weight := factor * (rarity(n, docs) / rarity(1, docs))
		found = append(found, weighed{Term{Text: term, Weight: weight, Talk: share > 0}, n})
	}
	for _, t := range q.words {
		if items := s.DF[t.term]; items > 0 {
			add(t.term, q.tuning.share(t), 1, items)
		}
	}
	var misspelt []token
	if !q.covers(s.DF) { // else no guess was found
		misspelt = q.misspelt(s)
	}
	for _, t := range misspelt {
		// The neighbour that most items have, the first of several.
		var term string
		var items int
		for _, guess := range q.neighbours(t.plain) {
			if n := s.DF[guess]; n > items {
				term, items = guess, n
			}
		}
		if items > 0 && !slices.ContainsFunc(found, func(w weighed) bool { return w.Text == term }) {
			add(term, 0, q.tuning.guess, items)
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
