package itemstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Bounds of a recall: ranked items besides pinned ones, and pinned items, the newest first.
const (
	maxCandidates = 200
	maxPinned     = 50
)

// Recall finds what may matter for a query: at most 200 items that have any of its terms, the rarest terms first and
// of each term the newest items, and the 50 newest pinned ones. It reads one snapshot of the store.
func (s *Store) Recall(ctx context.Context, v View, q recall.Query, now time.Time) (Found, error) {
	if err := v.check(); err != nil {
		return Found{}, err
	}
	var f Found
	err := s.read(ctx, "recalling", func(tx txn) (err error) {
		f, err = tx.find(ctx, v, q, now)
		return err
	})
	return f, err
}

// Limit and share of a [Store.Search] for items to forget.
const (
	MaxMatches = 20
	MinShare   = 0.25
)

// Search returns the items that match a text best, whole: those that reach a share of the best score. omitted counts
// the ones beyond the limit. Unlike a recall, it accepts any evidence: the caller has asked for them.
func (s *Store) Search(ctx context.Context, v View, text string, limit int, share float64, now time.Time) (hits []Hit, omitted int, err error) {
	found, err := s.Recall(ctx, v, recall.Read(text), now)
	if err != nil {
		return nil, 0, err
	}
	ranked := slices.DeleteFunc(found.Ranked, func(r recall.Scored) bool { return r.Evidence == 0 })
	slices.SortFunc(ranked, func(a, b recall.Scored) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	if len(ranked) > 0 {
		least := share * ranked[0].Score
		ranked = slices.DeleteFunc(ranked, func(r recall.Scored) bool { return r.Score < least })
	}
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

func (tx txn) find(ctx context.Context, v View, q recall.Query, now time.Time) (Found, error) {
	if err := tx.exec(ctx, tx.phrase.plan); err != nil {
		return Found{}, err
	}
	places := v.shelves()
	numbers, err := tx.look(ctx, places)
	if err != nil {
		return Found{}, err
	}
	shelves := numbers.of(places)
	stats, err := tx.stats(ctx, shelves, q)
	if err != nil {
		return Found{}, err
	}
	terms := recall.Terms(q, stats)
	seqs, err := tx.newest(ctx, shelves, terms, stats.DF)
	if err != nil {
		return Found{}, err
	}
	candidates, err := tx.candidates(ctx, seqs, terms)
	if err != nil {
		return Found{}, err
	}
	return Found{Ranked: recall.Rank(terms, stats, candidates, now), Terms: terms, Candidates: len(candidates)}, nil
}

// readCandidates reads only the columns that ranking needs.
func (p *phrases) readCandidates() string {
	return `SELECT i.id, s.scope, i.category, i.text, i.length, i.terms, i.updated_at, i.last_used_at, i.uses
		FROM memory_items i JOIN memory_scopes s ON s.no = i.scope_no WHERE ` + p.inNumbers("i.seq", "$1")
}

func (tx txn) candidates(ctx context.Context, seqs []int64, ranked []recall.Term) ([]recall.Candidate, error) {
	candidates := make([]recall.Candidate, 0, len(seqs))
	var c recall.Candidate
	var updated, used int64
	var list terms
	into := []any{&c.ID, &c.Scope, &c.Category, &c.Text, &c.Length, &list, &updated, &used, &c.Uses}
	err := tx.scan(ctx, tx.phrase.readCandidates(), []any{listOf(tx.phrase, seqs)}, into, func() {
		c.Counts, c.UpdatedAt, c.LastUsedAt = map[string]int{}, fromNanos(updated), fromNanos(used)
		list.each(func(term string, n int) {
			if slices.ContainsFunc(ranked, func(t recall.Term) bool { return t.Text == term }) {
				c.Counts[term] = n
			}
		})
		c.Pinned = c.Category == string(turnpolicy.Instruction)
		candidates = append(candidates, c)
	})
	return candidates, err
}

// stats sums the statistics that a query needs over shelves that share no items.
func (tx txn) stats(ctx context.Context, shelves []int64, q recall.Query) (recall.Stats, error) {
	stats := recall.Stats{DF: map[string]int{}}
	if err := tx.countsOf(ctx, shelves, append(q.Vocabulary(), countItems, countLength), stats.DF); err != nil {
		return stats, err
	}
	stats.Docs = stats.DF[countItems]
	if stats.Docs > 0 {
		stats.AvgLen = float64(stats.DF[countLength]) / float64(stats.Docs)
	}
	guesses := slices.DeleteFunc(q.Guesses(stats), func(term string) bool { return stats.DF[term] > 0 })
	if len(guesses) == 0 {
		return stats, nil
	}
	return stats, tx.countsOf(ctx, shelves, guesses, stats.DF)
}

func (tx txn) countsOf(ctx context.Context, shelves []int64, names []string, sums map[string]int) error {
	var name string
	var n int
	args := []any{listOf(tx.phrase, shelves), listOf(tx.phrase, names)}
	return tx.scan(ctx, tx.phrase.counts, args, []any{&name, &n}, func() { sums[name] += n })
}

// newest returns the seqs to rank: the newest items of each term until there are enough, and the newest pinned ones.
func (tx txn) newest(ctx context.Context, shelves []int64, terms []recall.Term, df map[string]int) ([]int64, error) {
	if len(shelves) == 0 {
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
	for len(names) > 0 && len(seqs) < maxCandidates {
		n := enough(names, df, maxCandidates-len(seqs))
		hits, err := tx.hits(ctx, shelves, names[:n], maxCandidates)
		if err != nil {
			return nil, err
		}
		for _, name := range names[:n] {
			take(hits[name], maxCandidates-len(seqs))
		}
		names = names[n:]
	}
	hits, err := tx.hits(ctx, shelves, []string{""}, maxPinned)
	take(hits[""][:min(len(hits[""]), maxPinned)], maxPinned)
	return seqs, err
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
func (tx txn) hits(ctx context.Context, shelves []int64, names []string, limit int) (map[string][]int64, error) {
	found := make(map[string][]int64, len(names))
	if tx.phrase.postgres {
		var name string
		var seq int64
		err := tx.scan(ctx, tx.phrase.hits, []any{names, shelves, limit}, []any{&name, &seq}, func() {
			found[name] = append(found[name], seq)
		})
		for _, seqs := range found {
			slices.SortFunc(seqs, func(a, b int64) int { return cmp.Compare(b, a) })
		}
		return found, err
	}
	match := make([]string, len(shelves))
	for _, name := range names {
		for n, shelf := range shelves {
			match[n] = `"` + token(shelf, name) + `"`
		}
		var err error
		if found[name], err = column[int64](ctx, tx, tx.phrase.hits, strings.Join(match, " OR "), limit); err != nil {
			return nil, err
		}
	}
	return found, nil
}
