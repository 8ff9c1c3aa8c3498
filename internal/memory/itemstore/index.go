package itemstore

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Names of statistics that are not terms: no term begins with "#".
const (
	countItems  = "#items"
	countLength = "#length"
)

// indexer collects a transaction's changes of index and statistics. flush writes them at its end: SQLite would write
// its index to the disk before each change of another table.
type indexer struct {
	tx      txn
	numbers placeNumbers
	entries []entry
	// unfolded is how many transactions have added to PostgreSQL's statistics since the last fold.
	unfolded int
}

type entry struct {
	remove      bool
	seq, length int64
	shelves     []int64
	// terms are the item's; the empty term marks a pinned item.
	terms []string
}

func (x *indexer) note(ctx context.Context, r *row, remove bool) error {
	places := r.place().shelves()
	if len(x.numbers.of(places)) < len(places) {
		numbers, err := x.tx.numbersOf(ctx, places)
		if err != nil {
			return err
		}
		maps.Copy(x.numbers, numbers)
	}
	var terms []string
	if r.pinned() {
		terms = append(terms, "")
	}
	r.terms.each(func(term string, _ int) { terms = append(terms, term) })
	x.entries = append(x.entries, entry{remove, r.seq, int64(r.length), x.numbers.of(places), terms})
	return nil
}

func (x *indexer) flush(ctx context.Context) error {
	if err := x.writeCounts(ctx); err != nil {
		return err
	}
	write := x.writeTokens
	if x.tx.phrase.postgres {
		write = x.writeRows
	}
	err := write(ctx)
	x.entries = nil
	return err
}

// SQLite's index deletes by the tokens that were inserted.
const (
	insertTokens = "INSERT INTO memory_index (rowid, tokens) VALUES ($1, $2)"
	deleteTokens = "INSERT INTO memory_index (memory_index, rowid, tokens) VALUES ('delete', $1, $2)"
)

func (x *indexer) writeTokens(ctx context.Context) error {
	for _, e := range x.entries {
		text := insertTokens
		if e.remove {
			text = deleteTokens
		}
		var tokens []string
		for _, shelf := range e.shelves {
			for _, term := range e.terms {
				tokens = append(tokens, token(shelf, term))
			}
		}
		if err := x.tx.exec(ctx, text, e.seq, strings.Join(tokens, " ")); err != nil {
			return err
		}
	}
	return nil
}

// token is a term on a shelf as SQLite's index holds it.
func token(shelf int64, term string) string { return strconv.FormatInt(shelf, 10) + "x" + term }

const (
	insertEntries = `INSERT INTO memory_index (shelf, term, seq)
		SELECT e.shelf, e.term, e.seq FROM unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) e (shelf, term, seq)`
	deleteEntries = `DELETE FROM memory_index i USING unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) e (shelf, term, seq)
		WHERE i.shelf = e.shelf AND i.term = e.term AND i.seq = e.seq`
)

// writeRows writes entries to PostgreSQL's index, in its order, which is faster and keeps the rows of a term together.
// Adding before removing is safe: a moved item gets another seq, so nothing is removed and added again.
func (x *indexer) writeRows(ctx context.Context) error {
	type posting struct {
		shelf, seq int64
		term       string
	}
	for _, remove := range []bool{false, true} {
		text := insertEntries
		if remove {
			text = deleteEntries
		}
		var rows []posting
		for _, e := range x.entries {
			for _, shelf := range e.shelves {
				for _, term := range e.terms {
					if e.remove == remove {
						rows = append(rows, posting{shelf, e.seq, term})
					}
				}
			}
		}
		slices.SortFunc(rows, func(a, b posting) int {
			return cmp.Or(cmp.Compare(a.shelf, b.shelf), cmp.Compare(a.term, b.term), cmp.Compare(a.seq, b.seq))
		})
		shelves, terms, seqs := make([]int64, len(rows)), make([]string, len(rows)), make([]int64, len(rows))
		for n, row := range rows {
			shelves[n], terms[n], seqs[n] = row.shelf, row.term, row.seq
		}
		if len(rows) == 0 {
			continue
		}
		if err := x.tx.exec(ctx, text, shelves, terms, seqs); err != nil {
			return err
		}
	}
	return nil
}

// changes sums the entries by shelf and name.
func (x *indexer) changes() map[int64]map[string]int64 {
	all := map[int64]map[string]int64{}
	for _, e := range x.entries {
		by := int64(1)
		if e.remove {
			by = -1
		}
		for _, shelf := range e.shelves {
			if all[shelf] == nil {
				all[shelf] = map[string]int64{}
			}
			all[shelf][countItems] += by
			all[shelf][countLength] += by * e.length
			for _, term := range e.terms {
				all[shelf][term] += by
			}
		}
	}
	for shelf, names := range all {
		maps.DeleteFunc(names, func(name string, n int64) bool { return n == 0 || name == "" })
		if len(names) == 0 {
			delete(all, shelf)
		}
	}
	return all
}

func (x *indexer) writeCounts(ctx context.Context) error {
	all := x.changes()
	shelves, names, numbers := []int64{0}, []string{""}, []int64{1} // for PostgreSQL; the first counts this transaction
	for _, shelf := range slices.Sorted(maps.Keys(all)) {
		if !x.tx.phrase.postgres {
			if err := x.addCounts(ctx, shelf, all[shelf]); err != nil {
				return err
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(all[shelf])) {
			shelves, names, numbers = append(shelves, shelf), append(names, name), append(numbers, all[shelf][name])
		}
	}
	if len(shelves) == 1 {
		return nil
	}
	return x.tx.one(ctx, x.tx.phrase.count, []any{shelves, names, numbers}, []any{&x.unfolded})
}

// dropUnusedTerms deletes terms that no item has: forgetting must leave no words.
const dropUnusedTerms = "DELETE FROM memory_counts WHERE shelf = $1 AND n = 0 AND name IN (SELECT value FROM json_each($2))"

func (x *indexer) addCounts(ctx context.Context, shelf int64, changes map[string]int64) error {
	text, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	if err := x.tx.exec(ctx, x.tx.phrase.count, shelf, string(text)); err != nil {
		return err
	}
	maps.DeleteFunc(changes, func(_ string, n int64) bool { return n > 0 })
	if len(changes) == 0 {
		return nil
	}
	return x.tx.exec(ctx, dropUnusedTerms, shelf, listOf(x.tx.phrase, slices.Collect(maps.Keys(changes))))
}
