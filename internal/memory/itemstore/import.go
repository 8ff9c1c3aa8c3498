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

// Import adds the items of an export of any store, with their ids, times and versions, each to the workspace that it
// names. Existing items stay; of two items with one slot the newer stays; forgotten items stay forgotten. An item
// whose text was edited in the export replaces the original. An id that belongs to another workspace is replaced by
// one derived from it. Items may lack ids and times.
//
// Items are written in transactions of [MaxBatch]. Any error, also one from items, ends the import: the counts say
// what is in the store, and importing it again does no harm.
func (s *Store) Import(ctx context.Context, items iter.Seq2[Item, error]) (Imported, error) {
	var counts Imported
	part := make([]Item, 0, MaxBatch)
	n := 0
	write := func() error {
		var w *importing
		err := s.change(ctx, "importing", func(ctx context.Context, tx txn) error {
			w = &importing{remembering: remembering{tx: tx, store: s, now: s.now()}, counts: counts, owners: map[string]string{}}
			return w.run(ctx, part)
		})
		if err != nil {
			return err
		}
		counts, part = w.counts, part[:0]
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

type importing struct {
	remembering

	counts Imported
	owners map[string]string // the workspaces that ids belong to
}

func (w *importing) run(ctx context.Context, items []Item) error {
	var ids []string
	for n := range items {
		ids = append(ids, items[n].ID, items[n].Supersedes, items[n].SupersededBy)
	}
	rows, err := w.begin(ctx, items, plainIDs(ids), false)
	if err != nil {
		return err
	}
	for n := range rows {
		w.owners[rows[n].ID] = rows[n].WorkspaceID
	}
	for n := range items {
		if err := w.take(ctx, items[n]); err != nil {
			return err
		}
	}
	return w.index.flush(ctx)
}

// own returns the id that an exported item gets in a workspace.
func (w *importing) own(id, workspace string) string {
	owner, taken := w.owners[id]
	if !taken || owner == workspace || id == "" {
		return id
	}
	parsed := ulid.MustParseStrict(id) // ids were checked
	sum := sha256.Sum256([]byte(workspace + "\x00" + id))
	copy(parsed[6:], sum[:])
	return parsed.String()
}

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

// edited imports an item whose id exists with another text or in another scope.
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

// fresh imports an item in effect whose id is new.
func (w *importing) fresh(ctx context.Context, item Item) error {
	scope := w.numbers[item.place()]
	if w.known[scopedText{scope, item.Hash}] != nil {
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
