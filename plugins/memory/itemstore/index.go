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

// Names of statistics that are no terms: terms begin with no such sign.
const (
	countItems  = "#items"
	countLength = "#length"
)

// indexer keeps the index and the statistics as a transaction changes items. It is
// flush that writes them, at the end of the transaction: SQLite would write its index
// to the disk before each change of another table.
type indexer struct {
	tx txn
	// numbers are those of places that were needed so far.
	numbers atlas
	entries []entry
	// unfolded is how many transactions have added to PostgreSQL's statistics since they
	// were last added up.
	unfolded int
}

// entry is an item that is put into the index, or taken out of it.
type entry struct {
	remove      bool
	seq, length int64
	shelves     []int64
	// terms are those of the item; an empty one stands for an item that is pinned.
	terms []string
}

func (tx txn) indexer(numbers atlas) *indexer {
	return &indexer{tx: tx, numbers: numbers}
}

// add puts an item into the index.
func (x *indexer) add(ctx context.Context, r *row) error { return x.note(ctx, r, false) }

// remove takes an item out of the index.
func (x *indexer) remove(ctx context.Context, r *row) error { return x.note(ctx, r, true) }

// move gives an item in the index another seq.
func (x *indexer) move(ctx context.Context, r *row, seq int64) error {
	if err := x.remove(ctx, r); err != nil {
		return err
	}
	r.seq = seq
	return x.add(ctx, r)
}

// note notes an entry.
func (x *indexer) note(ctx context.Context, r *row, remove bool) error {
	shelves, err := x.shelves(ctx, r)
	if err != nil {
		return err
	}
	var terms []string
	if r.pinned() {
		terms = append(terms, "")
	}
	r.terms.each(func(term string, _ int) { terms = append(terms, term) })
	x.entries = append(x.entries, entry{remove, r.seq, int64(r.length), shelves, terms})
	return nil
}

// shelves are the numbers under which an item stands in the index.
func (x *indexer) shelves(ctx context.Context, r *row) ([]int64, error) {
	places := r.place().shelves()
	if len(x.numbers.of(places)) < len(places) {
		numbers, err := x.tx.look(ctx, places)
		if err != nil {
			return nil, err
		}
		maps.Copy(x.numbers, numbers)
	}
	return x.numbers.of(places), nil
}

// flush writes what was noted.
func (x *indexer) flush(ctx context.Context) error {
	err := x.writeCounts(ctx)
	switch {
	case err != nil:
		return err
	case x.tx.phrase.postgres:
		err = x.writeRows(ctx)
	default:
		err = x.writeTokens(ctx)
	}
	x.entries = nil
	return err
}

// The statements of SQLite's index. To delete takes what was inserted.
const (
	insertTokens = "INSERT INTO memory_index (rowid, tokens) VALUES ($1, $2)"
	deleteTokens = "INSERT INTO memory_index (memory_index, rowid, tokens) VALUES ('delete', $1, $2)"
)

// writeTokens writes entries to SQLite's index.
func (x *indexer) writeTokens(ctx context.Context) error {
	for _, e := range x.entries {
		text := insertTokens
		if e.remove {
			text = deleteTokens
		}
		if _, err := x.tx.exec(ctx, text, e.seq, e.tokens()); err != nil {
			return err
		}
	}
	return nil
}

// token is what SQLite's index has for a term on a shelf.
func token(shelf int64, term string) string { return strconv.FormatInt(shelf, 10) + "x" + term }

// tokens are those of an entry.
func (e *entry) tokens() string {
	var b strings.Builder
	for _, shelf := range e.shelves {
		for _, term := range e.terms {
			b.WriteString(token(shelf, term))
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// The statements of PostgreSQL's index.
const (
	insertEntries = `INSERT INTO memory_index (shelf, term, seq)
		SELECT e.shelf, e.term, e.seq FROM unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) e (shelf, term, seq)`
	deleteEntries = `DELETE FROM memory_index i USING unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) e (shelf, term, seq)
		WHERE i.shelf = e.shelf AND i.term = e.term AND i.seq = e.seq`
)

// writeRows writes entries to PostgreSQL's index. What was put in and taken out is not
// there in the end; nothing is taken out and put in again, since what moves becomes
// another entry.
func (x *indexer) writeRows(ctx context.Context) error {
	var added, removed postings
	for _, e := range x.entries {
		if e.remove {
			removed = removed.add(&e)
		} else {
			added = added.add(&e)
		}
	}
	if err := added.write(ctx, x.tx, insertEntries); err != nil {
		return err
	}
	return removed.write(ctx, x.tx, deleteEntries)
}

// posting is a row of PostgreSQL's index.
type posting struct {
	shelf, seq int64
	term       string
}

type postings []posting

// add adds the rows of an entry.
func (p postings) add(e *entry) postings {
	for _, shelf := range e.shelves {
		for _, term := range e.terms {
			p = append(p, posting{shelf, e.seq, term})
		}
	}
	return p
}

// write runs a statement for all rows, in the order of the index, which is quicker and
// keeps rows of a term together.
func (p postings) write(ctx context.Context, tx txn, text string) error {
	if len(p) == 0 {
		return nil
	}
	slices.SortFunc(p, func(a, b posting) int {
		return cmp.Or(cmp.Compare(a.shelf, b.shelf), cmp.Compare(a.term, b.term), cmp.Compare(a.seq, b.seq))
	})
	shelves, terms, seqs := make([]int64, len(p)), make([]string, len(p)), make([]int64, len(p))
	for n, row := range p {
		shelves[n], terms[n], seqs[n] = row.shelf, row.term, row.seq
	}
	_, err := tx.exec(ctx, text, shelves, terms, seqs)
	return err
}

// changes are what the entries do to the statistics, by shelf and name.
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

// writeCounts adds what was noted to the statistics.
func (x *indexer) writeCounts(ctx context.Context) error {
	all := x.changes()
	if len(all) == 0 {
		return nil
	}
	if x.tx.phrase.postgres {
		return x.addDeltas(ctx, all)
	}
	for _, shelf := range slices.Sorted(maps.Keys(all)) {
		if err := x.addCounts(ctx, shelf, all[shelf]); err != nil {
			return err
		}
	}
	return nil
}

// addDeltas adds to PostgreSQL's statistics.
func (x *indexer) addDeltas(ctx context.Context, all map[int64]map[string]int64) error {
	shelves, names, numbers := []int64{0}, []string{""}, []int64{1} // by which transactions are counted
	for _, shelf := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[shelf])) {
			shelves, names, numbers = append(shelves, shelf), append(names, name), append(numbers, all[shelf][name])
		}
	}
	return x.tx.one(ctx, x.tx.phrase.count, []any{shelves, names, numbers}, []any{&x.unfolded})
}

// dropNothing takes those terms out of SQLite's statistics that no item has any more:
// they were somebody's words.
const dropNothing = "DELETE FROM memory_counts WHERE shelf = $1 AND n = 0 AND name IN (SELECT value FROM json_each($2))"

// addCounts adds to SQLite's statistics of a shelf.
func (x *indexer) addCounts(ctx context.Context, shelf int64, changes map[string]int64) error {
	text, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	if _, err := x.tx.exec(ctx, x.tx.phrase.count, shelf, string(text)); err != nil {
		return err
	}
	maps.DeleteFunc(changes, func(_ string, n int64) bool { return n > 0 })
	if len(changes) == 0 {
		return nil
	}
	_, err = x.tx.exec(ctx, dropNothing, shelf, listOf(x.tx.phrase, slices.Collect(maps.Keys(changes))))
	return err
}
