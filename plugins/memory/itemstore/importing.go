package itemstore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
)

// Import adds items of an export, of this store or of another: with their ids, times
// and versions, each into the workspace that it names. What is here already stays as
// it is; of two answers to one slot the newer one stays; what was forgotten here stays
// forgotten. An item of this scope whose text was edited in the export takes the
// place of what it was. An id that another workspace has is given up for one that is
// made of it, the same each time. Items may lack ids and times.
//
// Items are written as they come, many in a transaction. An error, also one that
// items yields, ends it: those before may be in the store by then, as the counts say,
// and to import them again does no harm.
func (s *Store) Import(ctx context.Context, items iter.Seq2[Item, error]) (Imported, error) {
	var counts Imported
	part := make([]Item, 0, MaxBatch)
	n := 0
	write := func() error {
		var w *importing
		err := s.change(ctx, "importing", func(ctx context.Context, tx txn) error {
			w = &importing{remembering: remembering{tx: tx, store: s, now: s.now()}, owners: map[string]string{}}
			return w.run(ctx, part)
		})
		if err != nil {
			return err
		}
		counts.add(w.counts)
		part = part[:0]
		s.foldWhereDue(ctx, w.index)
		return nil
	}
	for item, err := range items {
		n++
		if err == nil {
			item, err = s.imported(item)
		}
		if err != nil {
			return counts, fmt.Errorf("item %d: %w", n, err)
		}
		if part = append(part, item); len(part) < MaxBatch {
			continue
		}
		if err := write(); err != nil {
			return counts, err
		}
	}
	return counts, write()
}

func (i *Imported) add(more Imported) {
	i.Added += more.Added
	i.Replaced += more.Replaced
	i.Known += more.Known
	i.Outdated += more.Outdated
	i.Forgotten += more.Forgotten
}

// imported checks an item and fills in what it lacks.
func (s *Store) imported(item Item) (Item, error) {
	item.Text = strings.TrimSpace(item.Text)
	if err := item.Check(); err != nil {
		return item, err
	}
	now := s.now()
	if item.CreatedAt.IsZero() {
		item.CreatedAt = now
	}
	if item.UpdatedAt.IsZero() {
		item.UpdatedAt = item.CreatedAt
	}
	if item.ID == "" {
		id, err := s.newID(now)
		if err != nil {
			return item, err
		}
		item.ID = id
	}
	item.Hash = hashOf(item.Text)
	return item, nil
}

// importing is the work on some items.
type importing struct {
	remembering

	counts Imported
	// owners are the workspaces that ids belong to.
	owners map[string]string
}

// run writes items.
func (w *importing) run(ctx context.Context, items []Item) error {
	var places []place
	var marks, ids []string
	for n := range items {
		i := &items[n]
		places = append(places, i.place())
		marks = append(marks, w.store.mark(i.place(), i.Hash))
		ids = append(ids, i.ID, i.Supersedes, i.SupersededBy)
	}
	var err error
	if w.numbers, err = w.tx.settle(ctx, places); err != nil {
		return err
	}
	scopes, err := w.readOwners(ctx, ids)
	if err != nil {
		return err
	}
	if err := w.tx.own(ctx, lockClassScope, append(scopes, w.numbers.of(places)...)...); err != nil {
		return err
	}
	w.index = w.tx.indexer(w.numbers)
	if err := w.learn(ctx, items); err != nil {
		return err
	}
	if w.dead, err = w.tx.tombstones(ctx, marks); err != nil {
		return err
	}
	for n := range items {
		if err := w.take(ctx, items[n]); err != nil {
			return err
		}
	}
	return w.index.flush(ctx)
}

// readOwners reads to which workspaces those ids belong that there are, and returns
// the numbers of their scopes.
func (w *importing) readOwners(ctx context.Context, ids []string) ([]int64, error) {
	rows, err := w.tx.rows(ctx, selectRows+w.tx.phrase.in("i.id", "$1"), listOf(w.tx.phrase, plainIDs(ids)))
	var scopes []int64
	for n := range rows {
		w.owners[rows[n].ID] = rows[n].WorkspaceID
		scopes = append(scopes, rows[n].scopeNo)
	}
	return scopes, err
}

// own returns the id under which a workspace has what an export calls id.
func (w *importing) own(id, workspace string) string {
	owner, taken := w.owners[id]
	if !taken || owner == workspace || id == "" {
		return id
	}
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return id // never: ids were checked
	}
	sum := sha256.Sum256([]byte(workspace + "\x00" + id))
	copy(parsed[6:], sum[:])
	return parsed.String()
}

// take imports one item.
func (w *importing) take(ctx context.Context, item Item) error {
	item.ID = w.own(item.ID, item.WorkspaceID)
	item.Supersedes = w.own(item.Supersedes, item.WorkspaceID)
	item.SupersededBy = w.own(item.SupersededBy, item.WorkspaceID)
	if slices.Contains(w.dead, w.store.mark(item.place(), item.Hash)) {
		w.counts.Forgotten++
		return nil
	}
	here, err := w.tx.row(ctx, rowByID, item.ID)
	switch {
	case err != nil:
		return err
	case here != nil && here.place() == item.place() && here.Hash == item.Hash:
		w.counts.Known++
		return nil
	case here != nil:
		return w.edited(ctx, item, here)
	case item.SupersededBy != "":
		w.counts.Added++
		return w.insert(ctx, item)
	}
	return w.fresh(ctx, item)
}

// edited imports an item whose id is here, with another text or in another scope.
func (w *importing) edited(ctx context.Context, item Item, here *row) error {
	if here.SupersededBy != "" || item.SupersededBy != "" {
		w.counts.Outdated++
		return nil
	}
	outcome, err := w.remember(ctx, item, here.ID)
	switch {
	case err != nil:
	case outcome.Change == Known:
		w.counts.Known++
	default:
		w.counts.Replaced++
	}
	return err
}

// fresh imports an item in effect whose id is not here.
func (w *importing) fresh(ctx context.Context, item Item) error {
	scope := w.numbers[item.place()]
	if w.known[said{scope, item.Hash}] != nil {
		w.counts.Known++
		return nil
	}
	holder, err := w.holder(ctx, scope, item.Slot)
	switch {
	case err != nil:
		return err
	case holder == nil:
		w.counts.Added++
		return w.insert(ctx, item)
	case !item.UpdatedAt.After(holder.UpdatedAt):
		w.counts.Outdated++
		return nil
	}
	w.counts.Replaced++
	item.Supersedes = holder.ID
	if _, err := w.supersede(ctx, []*row{holder}, item.ID); err != nil {
		return err
	}
	return w.insert(ctx, item)
}
