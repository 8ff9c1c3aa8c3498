package itemstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Bounds of a recall: ranked items besides pinned ones, and pinned items, the newest first.
const (
	maxCandidates = 120
	maxPinned     = 50
)

// Recall finds what may matter for a query, ordered by [recall.Rank] for [recall.Pick]: at most 120 items that have any of its terms, the rarest terms first and
// of each term the newest items, and the 50 newest pinned items. It reads one snapshot of the store.
func (s *Store) Recall(ctx context.Context, v View, q recall.Query, now time.Time) (ranked []recall.Scored, err error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	err = s.read(ctx, "recalling", func(tx txn) error {
		ranked, err = tx.find(ctx, v, q, now)
		return err
	})
	return ranked, err
}

// Search returns the items that fit a text best, whole. omitted counts the ones beyond the limit. Unlike a recall, it
// accepts any evidence: the caller has asked for it.
func (s *Store) Search(ctx context.Context, v View, text string, limit int, now time.Time) (hits []Hit, omitted int, err error) {
	return s.search(ctx, v, recall.Read(text), limit, now, func(r, _ *recall.Scored) bool { return r.Evidence > 0 })
}

// Bounds of [Store.Matches].
const (
	maxMatches = 20
	minShare   = 0.25
)

// Matches returns the items to forget by a text: those that have words of it themselves, as they are spelt, and a quarter of the best
// score, at most 20. omitted counts more of them.
func (s *Store) Matches(ctx context.Context, v View, text string, now time.Time) (hits []Hit, omitted int, err error) {
	return s.search(ctx, v, recall.Read(text).Exact(), maxMatches, now, func(r, best *recall.Scored) bool { return r.Evidence > 0 && r.Score >= minShare*best.Score })
}

func (s *Store) search(
	ctx context.Context, v View, q recall.Query, limit int, now time.Time, good func(r, best *recall.Scored) bool,
) (hits []Hit, omitted int, err error) {
	ranked, err := s.Recall(ctx, v, q, now)
	if err != nil || len(ranked) == 0 {
		return nil, 0, err
	}
	slices.SortFunc(ranked, func(a, b recall.Scored) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	best := ranked[0]
	ranked = slices.DeleteFunc(ranked, func(r recall.Scored) bool { return !good(&r, &best) })
	omitted = max(0, len(ranked)-limit)
	for _, r := range ranked[:len(ranked)-omitted] {
		item, err := s.Get(ctx, v, r.ID)
		switch {
		case sqldb.HasCode(err, sqldb.CodeNotFound): // it was forgotten just now
		case err != nil:
			return nil, 0, err
		default:
			hits = append(hits, Hit{Item: item, Score: r.Score})
		}
	}
	return hits, omitted, nil
}

func (tx txn) find(ctx context.Context, v View, q recall.Query, now time.Time) ([]recall.Scored, error) {
	if err := tx.exec(ctx, tx.phrase.plan); err != nil {
		return nil, err
	}
	places := v.shelves()
	numbers, err := tx.numbersOf(ctx, places)
	if err != nil {
		return nil, err
	}
	shelves := numbers.of(places)
	stats, having, err := tx.stats(ctx, shelves, q)
	if err != nil {
		return nil, err
	}
	terms := recall.Terms(q, stats)
	seqs, err := tx.newest(ctx, having, terms, stats.DF)
	if err != nil {
		return nil, err
	}
	list, err := tx.candidates(ctx, seqs, terms)
	if err != nil {
		return nil, err
	}
	return recall.Rank(terms, stats, list, now), nil
}

// readCandidates reads only the columns that ranking needs. For a join, PostgreSQL would read all scopes.
func (p *phrases) readCandidates() string {
	return `SELECT i.id, (SELECT s.scope FROM memory_scopes s WHERE s.no = i.scope_no), i.category, i.text, i.length, i.terms,
		i.updated_at, i.last_used_at, i.uses FROM memory_items i WHERE ` + p.inNumbers("i.seq", "$1")
}

// candidates reads items to rank.
func (tx txn) candidates(ctx context.Context, seqs []int64, ranked []recall.Term) ([]recall.Candidate, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	asked := make(map[string]bool, len(ranked))
	for _, t := range ranked {
		asked[t.Text] = true
	}
	list := make([]recall.Candidate, 0, len(seqs))
	var c recall.Candidate
	var updated, used int64
	var words terms
	into := []any{&c.ID, &c.Scope, &c.Category, &c.Text, &c.Length, &words, &updated, &used, &c.Uses}
	err := tx.scan(ctx, tx.phrase.readCandidates(), []any{listOf(tx.phrase, seqs)}, into, func() {
		c.Counts, c.UpdatedAt, c.LastUsedAt = map[string]int{}, fromNanos(updated), fromNanos(used)
		c.Pinned = c.Category == string(turnpolicy.Instruction)
		words.each(func(term string, n int) {
			if asked[term] {
				c.Counts[term] = n
			}
		})
		list = append(list, c)
	})
	return list, err
}

// stats sums the statistics that a query needs over shelves that share no items. having are the shelves that have a
// term; the empty term, for pinned items, may be on any.
func (tx txn) stats(ctx context.Context, shelves []int64, q recall.Query) (stats recall.Stats, having map[string][]int64, err error) {
	stats, having = recall.Stats{DF: map[string]int{}}, map[string][]int64{"": shelves}
	count := func(query string, names []string, known map[string]int) error {
		var name string
		var shelf int64
		var n int
		args := []any{listOf(tx.phrase, shelves), listOf(tx.phrase, names)}
		return tx.scan(ctx, query, args, []any{&shelf, &name, &n}, func() {
			if known[name] > 0 {
				return
			}
			if stats.DF[name] += n; !slices.Contains(having[name], shelf) {
				having[name] = append(having[name], shelf)
			}
		})
	}
	err = count(tx.phrase.counts, append(q.Vocabulary(), countItems, countLength), nil)
	if prefixes := q.Prefixes(stats); err == nil && len(prefixes) > 0 && len(shelves) > 0 {
		err = count(tx.phrase.vocabulary, prefixes, maps.Clone(stats.DF))
	}
	stats.Docs = stats.DF[countItems]
	if stats.Docs > 0 {
		stats.AvgLen = float64(stats.DF[countLength]) / float64(stats.Docs)
	}
	return stats, having, err
}

// newest returns the seqs to rank: the newest items of each term until there are enough, and the newest pinned ones.
func (tx txn) newest(ctx context.Context, having map[string][]int64, terms []recall.Term, df map[string]int) ([]int64, error) {
	if len(having[""]) == 0 {
		return nil, nil
	}
	var names []string
	for _, t := range terms {
		names = append(names, t.Text)
	}
	var seqs []int64
	take := func(more []int64, most int) {
		for _, seq := range more {
			if most > 0 && !slices.Contains(seqs, seq) {
				seqs = append(seqs, seq)
				most--
			}
		}
	}
	var pinned []int64
	for round := 0; round == 0 || len(names) > 0 && len(seqs) < maxCandidates; round++ {
		n := enough(names, df, maxCandidates-len(seqs))
		asked := names[:n:n]
		if round == 0 {
			asked = append(asked, "")
		}
		hits, err := tx.hits(ctx, having, asked, maxCandidates)
		if err != nil {
			return nil, err
		}
		for _, name := range names[:n] {
			take(hits[name], maxCandidates-len(seqs))
		}
		if round == 0 {
			pinned = hits[""]
		}
		names = names[n:]
	}
	take(pinned[:min(len(pinned), maxPinned)], maxPinned)
	return seqs, nil
}

// enough returns how many of the terms may be needed for so many hits: a term has at most as many as items.
func enough(names []string, df map[string]int, hits int) int {
	for n, name := range names {
		if hits -= df[name]; hits <= 0 {
			return n + 1
		}
	}
	return len(names)
}

// hits returns the newest items of each term, newest first, at least limit of them if there are so many. The empty
// term stands for pinned items.
func (tx txn) hits(ctx context.Context, having map[string][]int64, names []string, limit int) (map[string][]int64, error) {
	found := make(map[string][]int64, len(names))
	if tx.phrase.postgres {
		var terms []string
		var shelves []int64
		for _, name := range names {
			for _, shelf := range having[name] {
				terms, shelves = append(terms, name), append(shelves, shelf)
			}
		}
		var name string
		var seq int64
		err := tx.scan(ctx, tx.phrase.hits, []any{terms, shelves, limit}, []any{&name, &seq}, func() {
			found[name] = append(found[name], seq)
		})
		for _, seqs := range found {
			slices.SortFunc(seqs, func(a, b int64) int { return cmp.Compare(b, a) })
		}
		return found, err
	}
	matches := make([]string, len(names))
	for n, name := range names {
		tokens := make([]string, len(having[name]))
		for n, shelf := range having[name] {
			tokens[n] = `"` + token(shelf, name) + `"`
		}
		matches[n] = strings.Join(tokens, " OR ")
	}
	var n int
	var list []byte
	var bad error
	err := tx.scan(ctx, tx.phrase.hits, []any{listOf(tx.phrase, matches), limit}, []any{&n, &list}, func() {
		var seqs []int64
		bad = errors.Join(bad, json.Unmarshal(list, &seqs))
		found[names[n]] = seqs
	})
	return found, errors.Join(err, bad)
}
