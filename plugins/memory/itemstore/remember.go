package itemstore

import (
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Remember keeps items, in one transaction: all or, after an error, none. It is on
// the disk when it returns. The outcomes are in the order of the items.
//
// A text that the scope has is known: it counts as said again now, and is otherwise as
// it was, but for a slot that it is given. A slot that is taken, and Replaces, make
// the older item history. What was forgotten is not kept, unless b.Restore says so.
// An item to replace that the workspace does not have in effect is CodeNotFound.
func (s *Store) Remember(ctx context.Context, b Batch) ([]Outcome, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	var outcomes []Outcome
	var work *remembering
	err := s.change(ctx, "remembering", func(ctx context.Context, tx txn) (err error) {
		work = &remembering{tx: tx, store: s, batch: &b, now: s.now()}
		outcomes, err = work.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.foldWhereDue(ctx, work.index)
	return outcomes, nil
}

// remembering is the work on one batch.
type remembering struct {
	tx    txn
	store *Store
	batch *Batch
	now   time.Time

	items   []Item
	numbers atlas
	// dead are the tombstones that stand against items of the batch.
	dead []string
	// known are the items in effect that have one of the batch's texts.
	known map[said]*row
	// index is nil where nothing is to be done.
	index *indexer
}

// said is what there is once: a text in a scope.
type said struct {
	scope int64
	hash  string
}

// run does it.
func (w *remembering) run(ctx context.Context) ([]Outcome, error) {
	if w.batch.Key != "" {
		taken, outcomes, err := w.claim(ctx)
		if err != nil || taken {
			return outcomes, err
		}
	}
	if err := w.setOut(ctx); err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(w.items))
	for n := range w.items {
		var err error
		if outcomes[n], err = w.remember(ctx, w.items[n], w.batch.Items[n].Replaces); err != nil {
			return nil, err
		}
	}
	if err := w.index.flush(ctx); err != nil {
		return nil, err
	}
	if w.batch.Key == "" {
		return outcomes, nil
	}
	return outcomes, w.record(ctx, outcomes)
}

// setOut reads what all items need, and locks their scopes.
func (w *remembering) setOut(ctx context.Context) error {
	var places []place
	var marks []string
	for n := range w.batch.Items {
		item := w.batch.Items[n].item(w.batch.WorkspaceID)
		item.Hash = hashOf(item.Text)
		w.items = append(w.items, item)
		places = append(places, item.place())
		marks = append(marks, w.store.mark(item.place(), item.Hash))
	}
	var err error
	if w.numbers, err = w.tx.settle(ctx, places); err != nil {
		return err
	}
	if err := w.lock(ctx, places); err != nil {
		return err
	}
	w.index = w.tx.indexer(w.numbers)
	if err := w.learn(ctx, w.items); err != nil {
		return err
	}
	if w.batch.Restore {
		_, err = w.tx.exec(ctx, "DELETE FROM memory_tombstones WHERE "+w.tx.phrase.in("mark", "$1"), listOf(w.tx.phrase, marks))
		return err
	}
	w.dead, err = w.tx.tombstones(ctx, marks)
	return err
}

// lock waits for those who change something in the scopes of the items, also of those
// that are to be replaced. An item's scope never changes.
func (w *remembering) lock(ctx context.Context, places []place) error {
	if w.tx.phrase.own == "" {
		return nil
	}
	var replaced []string
	for n := range w.batch.Items {
		if id := w.batch.Items[n].Replaces; id != "" {
			replaced = append(replaced, id)
		}
	}
	numbers, err := w.tx.scopesOf(ctx, replaced)
	if err != nil {
		return err
	}
	return w.tx.own(ctx, lockClassScope, append(numbers, w.numbers.of(places)...)...)
}

// learn reads which of the texts are known.
func (w *remembering) learn(ctx context.Context, items []Item) error {
	var scopes []int64
	var hashes []string
	for n := range items {
		scopes, hashes = append(scopes, w.numbers[items[n].place()]), append(hashes, items[n].Hash)
	}
	rows, err := w.tx.rows(ctx, w.tx.phrase.rowsByHash(), listOf(w.tx.phrase, scopes), listOf(w.tx.phrase, hashes))
	w.known = make(map[said]*row, len(rows))
	for n := range rows {
		w.known[said{rows[n].scopeNo, rows[n].Hash}] = &rows[n]
	}
	return err
}

// rowsByHash reads items in effect by lists of scopes and of hashes. Of SQLite it also
// gives those with a hash of one and a scope of another.
func (p *phrases) rowsByHash() string {
	if p.postgres {
		return "SELECT " + columns + ` FROM unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[])) k (scope_no, hash)
			JOIN memory_items i ON i.scope_no = k.scope_no AND i.hash = k.hash AND i.superseded_by IS NULL
			JOIN memory_scopes s ON s.no = i.scope_no`
	}
	return selectRows + p.inNumbers("i.scope_no", "$1") + " AND " + p.in("i.hash", "$2") + " AND i.superseded_by IS NULL"
}

// scopesOf returns the numbers of the scopes of items.
func (tx txn) scopesOf(ctx context.Context, ids []string) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return column[int64](ctx, tx, "SELECT DISTINCT scope_no FROM memory_items WHERE "+tx.phrase.in("id", "$1"), listOf(tx.phrase, ids))
}

// tombstones returns those of the marks that there are.
func (tx txn) tombstones(ctx context.Context, marks []string) ([]string, error) {
	return column[string](ctx, tx, "SELECT mark FROM memory_tombstones WHERE "+tx.phrase.in("mark", "$1"), listOf(tx.phrase, marks))
}

// Queries for items in effect, by their scope and what is unique in it.
const (
	rowByHash = selectRows + "i.scope_no = $1 AND i.hash = $2 AND i.superseded_by IS NULL"
	rowBySlot = selectRows + "i.scope_no = $1 AND i.slot = $2 AND i.superseded_by IS NULL AND i.slot <> ''"
	rowByID   = selectRows + "i.id = $1"
)

// remember keeps one item.
func (w *remembering) remember(ctx context.Context, item Item, replaces string) (Outcome, error) {
	if slices.Contains(w.dead, w.store.mark(item.place(), item.Hash)) {
		return Outcome{Change: Forgotten, Item: item}, nil
	}
	scope := w.numbers[item.place()]
	older, err := w.older(ctx, scope, &item, replaces)
	if err != nil {
		return Outcome{}, err
	}
	if known := w.known[said{scope, item.Hash}]; known != nil {
		older = slices.DeleteFunc(older, func(r *row) bool { return r.ID == known.ID })
		return w.confirm(ctx, known, item.Slot, older)
	}
	return w.add(ctx, item, older)
}

// older returns the items that a new one takes the place of: that of its slot, and
// that which the caller names.
func (w *remembering) older(ctx context.Context, scope int64, item *Item, replaces string) ([]*row, error) {
	var list []*row
	if replaces != "" {
		r, err := w.tx.row(ctx, rowByID, replaces)
		if err != nil {
			return nil, err
		}
		if r == nil || r.WorkspaceID != item.WorkspaceID || r.SupersededBy != "" {
			return nil, sqldb.Failf(sqldb.CodeNotFound, "look for it again: it was forgotten, or replaced", "there is no item %q in effect to replace", replaces)
		}
		list = append(list, r)
	}
	r, err := w.holder(ctx, scope, item.Slot)
	if r != nil && r.ID != replaces {
		list = append(list, r)
	}
	return list, err
}

// holder returns the item that has a slot of a scope, or nil.
func (w *remembering) holder(ctx context.Context, scope int64, slot string) (*row, error) {
	if slot == "" {
		return nil, nil
	}
	return w.tx.row(ctx, rowBySlot, scope, slot)
}

// confirm notes that a known item was said again.
func (w *remembering) confirm(ctx context.Context, r *row, slot string, older []*row) (Outcome, error) {
	ids, err := w.supersede(ctx, older, r.ID)
	if err != nil {
		return Outcome{}, err
	}
	if slot != "" {
		r.Slot = slot
	}
	if len(ids) > 0 {
		r.Supersedes = ids[0]
	}
	r.UpdatedAt = w.now
	var seq int64
	err = w.tx.one(ctx, "UPDATE memory_items SET seq = "+w.tx.phrase.newest+", updated_at = $2, slot = $3, supersedes = $4 WHERE id = $1 RETURNING seq",
		[]any{r.ID, nanos(r.UpdatedAt), r.Slot, r.Supersedes}, []any{&seq})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Change: Known, Item: r.Item, Replaced: ids}, w.index.move(ctx, r, seq)
}

// add keeps an item that is new.
func (w *remembering) add(ctx context.Context, item Item, older []*row) (Outcome, error) {
	id, err := w.store.newID(w.now)
	if err != nil {
		return Outcome{}, err
	}
	item.ID, item.CreatedAt, item.UpdatedAt = id, w.now, w.now
	ids, err := w.supersede(ctx, older, id)
	if err != nil {
		return Outcome{}, err
	}
	change := Added
	if len(ids) > 0 {
		change, item.Supersedes = Replaced, ids[0]
	}
	return Outcome{Change: change, Item: item, Replaced: ids}, w.insert(ctx, item)
}

// supersede makes items history, and returns their ids.
func (w *remembering) supersede(ctx context.Context, older []*row, by string) ([]string, error) {
	var ids []string
	for _, r := range older {
		if err := w.index.supersede(ctx, r, by); err != nil {
			return nil, err
		}
		delete(w.known, said{r.scopeNo, r.Hash})
		ids = append(ids, r.ID)
	}
	return ids, nil
}

const insertRow = `INSERT INTO memory_items (id, home, scope_no, category, source, slot, hash, created_at, updated_at, last_used_at, uses,
	supersedes, superseded_by, length, terms, text, evidence)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) RETURNING seq`

// insert adds an item to the store and, if it is in effect, to the index.
func (w *remembering) insert(ctx context.Context, item Item) error {
	r := &row{Item: item, home: w.numbers[home(item.WorkspaceID)], scopeNo: w.numbers[item.place()]}
	r.terms, r.length = termsOf(r.Text)
	var by any // null for what is in effect
	if r.SupersededBy != "" {
		by = r.SupersededBy
	}
	args := []any{
		r.ID, r.home, r.scopeNo, string(r.Category), string(r.Source), r.Slot, r.Hash, nanos(r.CreatedAt), nanos(r.UpdatedAt), nanos(r.LastUsedAt),
		r.Uses, r.Supersedes, by, r.length, string(r.terms), r.Text, r.Evidence,
	}
	if err := w.tx.one(ctx, insertRow, args, []any{&r.seq}); err != nil || by != nil {
		return err
	}
	w.known[said{r.scopeNo, r.Hash}] = r
	return w.index.add(ctx, r)
}

// supersede makes an item in effect history.
func (x *indexer) supersede(ctx context.Context, r *row, by string) error {
	if _, err := x.tx.exec(ctx, "UPDATE memory_items SET superseded_by = $2 WHERE id = $1", r.ID, by); err != nil {
		return err
	}
	return x.remove(ctx, r)
}
