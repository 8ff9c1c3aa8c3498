package itemstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

const (
	// maxCandidates is how many items are ranked at most, besides pinned ones.
	maxCandidates = 200
	// maxPinned is how many pinned items a recall brings at most, the newest.
	maxPinned = 50
	// Bounds of a search.
	defaultHits = 10
	maxHits     = 100
)

// Recall finds what may matter for a query: at most 200 items that have any of its
// terms, the rarest terms first and of each the newest items, and besides the pinned
// ones, at most the 50 newest. All of it is read from one state of the store.
func (s *Store) Recall(ctx context.Context, v View, q recall.Query, now time.Time) (Found, error) {
	if err := v.check(); err != nil {
		return Found{}, err
	}
	var f Found
	err := s.read(ctx, "recalling", func(tx txn) (err error) {
		f, err = tx.find(ctx, v, q, now, true)
		return err
	})
	return f, err
}

// Search finds the items that fit a text best, at most limit: 0 means 10, and 100 are
// the most. Pinned items have no privilege in it.
func (s *Store) Search(ctx context.Context, v View, text string, limit int) ([]Hit, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = defaultHits
	}
	var hits []Hit
	err := s.read(ctx, "searching", func(tx txn) error {
		f, err := tx.find(ctx, v, recall.Read(text), s.opts.Now(), false)
		if err != nil {
			return err
		}
		hits, err = tx.hitsOf(ctx, f.Ranked[:min(limit, maxHits, len(f.Ranked))])
		return err
	})
	return hits, err
}

// hitsOf reads the items that were found.
func (tx txn) hitsOf(ctx context.Context, ranked []recall.Scored) ([]Hit, error) {
	if len(ranked) == 0 {
		return nil, nil
	}
	var ids []string
	for n := range ranked {
		ids = append(ids, ranked[n].ID)
	}
	rows, err := tx.rows(ctx, selectRows+tx.phrase.in("i.id", "$1"), listOf(tx.phrase, ids))
	if err != nil {
		return nil, err
	}
	items := make(map[string]Item, len(rows))
	for n := range rows {
		items[rows[n].ID] = rows[n].Item
	}
	hits := make([]Hit, len(ranked))
	for n := range ranked {
		hits[n] = Hit{Item: items[ranked[n].ID], Score: ranked[n].Score}
	}
	return hits, nil
}

// find ranks what fits a query.
func (tx txn) find(ctx context.Context, v View, q recall.Query, now time.Time, pinned bool) (Found, error) {
	if err := tx.steady(ctx); err != nil {
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
	seqs, err := tx.newest(ctx, shelves, terms, stats.DF, pinned)
	if err != nil {
		return Found{}, err
	}
	candidates, err := tx.candidates(ctx, seqs, terms, pinned)
	if err != nil {
		return Found{}, err
	}
	return Found{Ranked: recall.Rank(terms, stats, candidates, now), Terms: terms, Candidates: len(candidates)}, nil
}

// readCandidates reads what is ranked of items: less than a row, for it is much.
func (p *phrases) readCandidates() string {
	return "SELECT id, scope_no, category, text, length, terms, updated_at, last_used_at, uses FROM memory_items WHERE " + p.inNumbers("seq", "$1")
}

// candidates reads the items that are ranked.
func (tx txn) candidates(ctx context.Context, seqs []int64, ranked []recall.Term, pinned bool) ([]recall.Candidate, error) {
	wanted := make(map[string]bool, len(ranked))
	for _, t := range ranked {
		wanted[t.Text] = true
	}
	candidates := make([]recall.Candidate, 0, len(seqs))
	scopes := make([]int64, 0, len(seqs))
	err := tx.each(ctx, tx.phrase.readCandidates(), []any{listOf(tx.phrase, seqs)}, func(rows *sql.Rows) error {
		var c recall.Candidate
		var scope, updated, used int64
		var list terms
		if err := rows.Scan(&c.ID, &scope, &c.Category, &c.Text, &c.Length, &list, &updated, &used, &c.Uses); err != nil {
			return err
		}
		c.Counts, c.UpdatedAt, c.LastUsedAt = list.counts(wanted), fromNanos(updated), fromNanos(used)
		c.Pinned = pinned && c.Category == string(turnpolicy.Instruction)
		candidates, scopes = append(candidates, c), append(scopes, scope)
		return nil
	})
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	names, err := tx.scopeNames(ctx, scopes)
	for n := range candidates {
		candidates[n].Scope = names[scopes[n]]
	}
	return candidates, err
}

// scopeNames returns what kinds of scopes have these numbers.
func (tx txn) scopeNames(ctx context.Context, numbers []int64) (map[int64]string, error) {
	distinct := slices.Compact(slices.Sorted(slices.Values(numbers)))
	names := make(map[int64]string, len(distinct))
	err := tx.each(ctx, tx.phrase.readScopeNames(), []any{listOf(tx.phrase, distinct)}, func(rows *sql.Rows) error {
		var no int64
		var name string
		if err := rows.Scan(&no, &name); err != nil {
			return err
		}
		names[no] = name
		return nil
	})
	return names, err
}

func (p *phrases) readScopeNames() string {
	return "SELECT no, scope FROM memory_scopes WHERE " + p.inNumbers("no", "$1")
}

// stats reads the statistics that the terms of a query need: those of the items on some
// shelves, which have no item in common.
func (tx txn) stats(ctx context.Context, shelves []int64, q recall.Query) (recall.Stats, error) {
	stats := recall.Stats{DF: map[string]int{}}
	if err := tx.countsOf(ctx, shelves, append(q.Vocabulary(), countItems, countLength), stats.DF); err != nil {
		return stats, err
	}
	stats.Docs = stats.DF[countItems]
	if stats.Docs > 0 {
		stats.AvgLen = float64(stats.DF[countLength]) / float64(stats.Docs)
	}
	guesses := slices.DeleteFunc(q.Guesses(stats), func(term string) bool { return stats.DF[term] > 0 }) // counted already
	if len(guesses) == 0 {
		return stats, nil
	}
	return stats, tx.countsOf(ctx, shelves, guesses, stats.DF)
}

// countsOf adds up counts by their names.
func (tx txn) countsOf(ctx context.Context, shelves []int64, names []string, into map[string]int) error {
	return tx.each(ctx, tx.phrase.counts, []any{listOf(tx.phrase, shelves), listOf(tx.phrase, names)}, func(rows *sql.Rows) error {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			return err
		}
		into[name] += n
		return nil
	})
}

// newest returns which items are ranked: the newest of each term, until there are
// enough, and of what is pinned.
func (tx txn) newest(ctx context.Context, shelves []int64, terms []recall.Term, df map[string]int, pinned bool) ([]int64, error) {
	if len(shelves) == 0 {
		return nil, nil
	}
	var names []string
	for _, t := range terms {
		names = append(names, t.Text)
	}
	var seqs []int64
	for len(names) > 0 && len(seqs) < maxCandidates {
		n := enough(names, df, maxCandidates-len(seqs))
		hits, err := tx.hits(ctx, shelves, names[:n], maxCandidates)
		if err != nil {
			return nil, err
		}
		for _, name := range names[:n] {
			seqs = take(seqs, hits[name], maxCandidates)
		}
		names = names[n:]
	}
	if pinned {
		hits, err := tx.hits(ctx, shelves, []string{""}, maxPinned)
		if err != nil {
			return nil, err
		}
		newest := hits[""]
		seqs = take(seqs, newest[:min(len(newest), maxPinned)], len(seqs)+maxPinned)
	}
	return seqs, nil
}

// enough returns how many of the terms have to be looked for to fill some room, for
// all that is known: that none has more hits than there are items with it.
func enough(names []string, df map[string]int, room int) int {
	for n, name := range names {
		if room -= df[name]; room <= 0 {
			return n + 1
		}
	}
	return len(names)
}

// take adds what is new to a list, until it is full.
func take(list, more []int64, full int) []int64 {
	for _, seq := range more {
		if len(list) == full {
			break
		}
		if !slices.Contains(list, seq) {
			list = append(list, seq)
		}
	}
	return list
}

// hits returns for each term the newest items that have it, or are pinned where it is
// empty, the newest first: at least limit of them, if there are so many.
func (tx txn) hits(ctx context.Context, shelves []int64, names []string, limit int) (map[string][]int64, error) {
	found := make(map[string][]int64, len(names))
	if tx.phrase.postgres {
		err := tx.each(ctx, tx.phrase.hits, []any{names, shelves, limit}, func(rows *sql.Rows) error {
			var name string
			var seq int64
			if err := rows.Scan(&name, &seq); err != nil {
				return err
			}
			found[name] = append(found[name], seq)
			return nil
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
