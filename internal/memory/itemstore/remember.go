package itemstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Remember stores items in one transaction: all or, after an error, none. They are on the disk when it returns. The
// outcomes are in the order of the items; there are none if the batch's key is known.
//
// A text that the scope has already is confirmed, and may be given a slot; nothing else of it changes. A slot that is
// taken, and Supersedes, make the older item history. Forgotten items are not stored, unless b.Restore says so.
// CodeNotFound means that the workspace has no such item to replace.
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

type remembering struct {
	tx    txn
	store *Store
	batch *Batch
	now   time.Time

	numbers placeNumbers
	dead    []string            // tombstones that match items of the batch
	known   map[scopedText]*row // items in effect that have one of the batch's texts
	index   *indexer            // nil if there is nothing to do
}

// scopedText is a text in a scope, which is unique.
type scopedText struct {
	scope int64
	hash  string
}

func (w *remembering) run(ctx context.Context) ([]Outcome, error) {
	if first, err := w.claim(ctx); err != nil || !first {
		return nil, err
	}
	var items []Item
	var replaced []string
	for n := range w.batch.Items {
		item := w.batch.item(n)
		item.Hash = hashOf(item.Text)
		items, replaced = append(items, item), append(replaced, item.Supersedes)
	}
	if _, err := w.begin(ctx, items, plainIDs(replaced), w.batch.Restore); err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(items))
	for n, item := range items {
		item.Supersedes = "" // what it replaces may be history by now
		var err error
		if outcomes[n], err = w.remember(ctx, item, items[n].Supersedes); err != nil {
			return nil, err
		}
	}
	return outcomes, w.index.flush(ctx)
}

// begin locks the scopes of items and of those with the given ids, which it returns, and reads what all items need.
// An item's scope never changes.
func (w *remembering) begin(ctx context.Context, items []Item, ids []string, restore bool) ([]row, error) {
	var places []place
	var marks, hashes []string
	for n := range items {
		i := &items[n]
		places, hashes = append(places, i.place()), append(hashes, i.Hash)
		marks = append(marks, w.store.mark(i.place(), i.Hash))
	}
	var err error
	if w.numbers, err = w.tx.ensurePlaces(ctx, places); err != nil {
		return nil, err
	}
	named, err := w.tx.rowsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	scopes := w.numbers.of(places)
	locks := slices.Clone(scopes)
	for n := range named {
		locks = append(locks, named[n].scopeNo)
	}
	if err := w.tx.lock(ctx, w.tx.phrase.own, lockClassScope, locks...); err != nil {
		return nil, err
	}
	w.index = &indexer{tx: w.tx, numbers: w.numbers}
	rows, err := w.tx.rows(ctx, w.tx.phrase.rowsByHash(), listOf(w.tx.phrase, scopes), listOf(w.tx.phrase, hashes))
	if err != nil {
		return nil, err
	}
	w.known = make(map[scopedText]*row, len(rows))
	for n := range rows {
		w.known[scopedText{rows[n].scopeNo, rows[n].Hash}] = &rows[n]
	}
	if restore {
		err = w.tx.exec(ctx, "DELETE FROM memory_tombstones WHERE "+w.tx.phrase.in("mark", "$1"), listOf(w.tx.phrase, marks))
	} else {
		w.dead, err = column[string](ctx, w.tx, "SELECT mark FROM memory_tombstones WHERE "+w.tx.phrase.in("mark", "$1"), listOf(w.tx.phrase, marks))
	}
	return named, err
}

// rowsByHash reads items in effect by scopes and hashes. SQLite's also returns those with the hash of one item and
// the scope of another.
func (p *phrases) rowsByHash() string {
	if p.postgres {
		return "SELECT " + columns + ` FROM unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[])) k (scope_no, hash)
			JOIN memory_items i ON i.scope_no = k.scope_no AND i.hash = k.hash AND i.superseded_by IS NULL
			JOIN memory_scopes s ON s.no = i.scope_no`
	}
	return selectRows + p.inNumbers("i.scope_no", "$1") + " AND " + p.in("i.hash", "$2") + " AND i.superseded_by IS NULL"
}

// Queries for items in effect by what is unique in a scope.
const (
	rowByHash = selectRows + "i.scope_no = $1 AND i.hash = $2 AND i.superseded_by IS NULL"
	rowBySlot = selectRows + "i.scope_no = $1 AND i.slot = $2 AND i.superseded_by IS NULL AND i.slot <> ''"
	rowByID   = selectRows + "i.id = $1"
)

func (w *remembering) remember(ctx context.Context, item Item, replaces string) (Outcome, error) {
	if slices.Contains(w.dead, w.store.mark(item.place(), item.Hash)) {
		return Outcome{Change: Forgotten, Item: item}, nil
	}
	scope := w.numbers[item.place()]
	known := w.known[scopedText{scope, item.Hash}]
	older, err := w.older(ctx, scope, &item, replaces, known)
	if err != nil {
		return Outcome{}, err
	}
	if known != nil {
		older = slices.DeleteFunc(older, func(r *row) bool { return r.ID == known.ID })
		return w.confirm(ctx, known, item.Slot, older)
	}
	return w.add(ctx, item, older)
}

// older returns the items that a new one replaces: by its slot, and by the id that the caller names, unless a known item
// with its text has replaced that already.
func (w *remembering) older(ctx context.Context, scope int64, item *Item, replaces string, known *row) ([]*row, error) {
	var list []*row
	if replaces != "" {
		r, err := w.tx.row(ctx, rowByID, replaces)
		if err != nil {
			return nil, err
		}
		switch {
		case r == nil || r.WorkspaceID != item.WorkspaceID || r.SupersededBy != "" && (known == nil || known.ID != r.SupersededBy):
			return nil, sqldb.Failf(sqldb.CodeNotFound, "look it up again: it was forgotten or replaced", "there is no item %q in effect to replace", replaces)
		case r.SupersededBy == "":
			list = append(list, r)
		}
	}
	r, err := w.holder(ctx, scope, item.Slot)
	if r != nil && r.ID != replaces {
		list = append(list, r)
	}
	return list, err
}

func (w *remembering) holder(ctx context.Context, scope int64, slot string) (*row, error) {
	if slot == "" {
		return nil, nil
	}
	return w.tx.row(ctx, rowBySlot, scope, slot)
}

func (w *remembering) confirm(ctx context.Context, r *row, slot string, older []*row) (Outcome, error) {
	ids, err := w.supersede(ctx, older, r.ID)
	if err != nil {
		return Outcome{}, err
	}
	r.Slot, r.UpdatedAt = cmp.Or(slot, r.Slot), w.now
	if len(ids) > 0 {
		r.Supersedes = ids[0]
	}
	if err := w.index.note(ctx, r, true); err != nil {
		return Outcome{}, err
	}
	err = w.tx.one(ctx, "UPDATE memory_items SET seq = "+w.tx.phrase.newest+", updated_at = $2, slot = $3, supersedes = $4 WHERE id = $1 RETURNING seq",
		[]any{r.ID, nanos(r.UpdatedAt), r.Slot, r.Supersedes}, []any{&r.seq})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Change: Known, Item: r.Item, Replaced: ids}, w.index.note(ctx, r, false)
}

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

// supersede makes items history and returns their ids.
func (w *remembering) supersede(ctx context.Context, older []*row, by string) ([]string, error) {
	var ids []string
	for _, r := range older {
		if err := w.index.supersede(ctx, r, by); err != nil {
			return nil, err
		}
		delete(w.known, scopedText{r.scopeNo, r.Hash})
		ids = append(ids, r.ID)
	}
	return ids, nil
}

const insertRow = `INSERT INTO memory_items (id, home, scope_no, category, source, slot, hash, created_at, updated_at, last_used_at, uses,
	supersedes, superseded_by, length, terms, text, evidence)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) RETURNING seq`

// insert stores an item and, if it is in effect, indexes it.
func (w *remembering) insert(ctx context.Context, item Item) error {
	r := &row{Item: item, home: w.numbers[home(item.WorkspaceID)], scopeNo: w.numbers[item.place()]}
	r.terms, r.length = termsOf(r.Text)
	args := []any{
		r.ID, r.home, r.scopeNo, string(r.Category), string(r.Source), r.Slot, r.Hash, nanos(r.CreatedAt), nanos(r.UpdatedAt), nanos(r.LastUsedAt),
		r.Uses, r.Supersedes, nullable(r.SupersededBy), r.length, string(r.terms), r.Text, r.Evidence,
	}
	if err := w.tx.one(ctx, insertRow, args, []any{&r.seq}); err != nil || r.SupersededBy != "" {
		return err
	}
	w.known[scopedText{r.scopeNo, r.Hash}] = r
	return w.index.note(ctx, r, false)
}

// nullable is null for an empty text.
func nullable(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

func (x *indexer) supersede(ctx context.Context, r *row, by string) error {
	if err := x.tx.exec(ctx, "UPDATE memory_items SET superseded_by = $2 WHERE id = $1", r.ID, by); err != nil {
		return err
	}
	return x.note(ctx, r, true)
}

const (
	keepBatches  = 30 * 24 * time.Hour // how long a batch's key is known
	pruneBatches = 8                   // how many expired keys each batch deletes
)

// claim takes the key of the batch, if it has one, and reports whether it was free. It deletes some expired keys.
func (w *remembering) claim(ctx context.Context) (free bool, err error) {
	if w.batch.Key == "" {
		return true, nil
	}
	expired := nanos(w.now.Add(-keepBatches))
	err = w.tx.one(ctx, `INSERT INTO memory_batches (workspace_id, name, at, outcomes) VALUES ($1, $2, $3, '[]')
		ON CONFLICT (workspace_id, name) DO UPDATE SET at = excluded.at WHERE memory_batches.at < $4 RETURNING true`,
		[]any{w.batch.WorkspaceID, w.batch.Key, nanos(w.now), expired}, []any{&free})
	if err != nil || !free {
		return false, err
	}
	return true, w.tx.exec(ctx, "DELETE FROM memory_batches WHERE no IN (SELECT no FROM memory_batches WHERE at < $1 ORDER BY at LIMIT $2"+w.tx.phrase.skip+")",
		expired, pruneBatches)
}
