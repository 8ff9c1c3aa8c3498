package itemstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
)

const defaultPage = 50

// List returns items in the order of their ids, that is, of their creation, the newest first by default. Next is the
// cursor of the next page, and empty at the end. Concurrent changes do not make it miss other items.
func (s *Store) List(ctx context.Context, v View, f Filter, p Page) (items []Item, next string, err error) {
	err = cmp.Or(
		v.check(), checkName("where the page begins", p.After, MaxName),
		known("scope", f.Scope, append(Scopes(), "")), known("category", f.Category, append(turnpolicy.Categories(), "")),
	)
	if err != nil {
		return nil, "", err
	}
	limit := min(cmp.Or(max(p.Limit, 0), defaultPage), MaxPage)
	err = s.read(ctx, "listing", func(tx txn) error {
		fields, err := tx.fields(ctx, v, f)
		for _, field := range fields {
			rows, err := tx.page(ctx, field, f, p, limit+1)
			if err != nil {
				return err
			}
			for n := range rows {
				items = append(items, rows[n].Item)
			}
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(items, func(a, b Item) int {
		if p.OldestFirst {
			return strings.Compare(a.ID, b.ID)
		}
		return strings.Compare(b.ID, a.ID)
	})
	if len(items) > limit {
		items, next = items[:limit], items[limit-1].ID
	}
	return items, next, nil
}

type field struct {
	column string
	number int64
}

// fields are the disjoint parts of a view that a filter selects.
func (tx txn) fields(ctx context.Context, v View, f Filter) ([]field, error) {
	var list []field
	places, column := v.places(), "scope_no"
	if v.AllScopes {
		places, column = []place{home(v.WorkspaceID)}, "home"
	}
	numbers, err := tx.numbersOf(ctx, places)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if no := numbers[p]; no != 0 && (v.AllScopes || f.Scope == "" || f.Scope == p.scope) {
			list = append(list, field{column, no})
		}
	}
	if !v.UserEverywhere || v.UserID == "" || f.Scope != "" && f.Scope != ScopeUser {
		return list, nil
	}
	var no int64
	err = tx.scan(ctx, "SELECT no FROM memory_scopes WHERE scope = $1 AND scope_id = $2", []any{string(ScopeUser), v.UserID},
		[]any{&no}, func() { list = append(list, field{column, no}) })
	return list, err
}

func (tx txn) page(ctx context.Context, in field, f Filter, p Page, limit int) ([]row, error) {
	var q strings.Builder
	args := []any{in.number, limit}
	add := func(condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(&q, condition, len(args))
	}
	q.WriteString(selectRows + "i." + in.column + " = $1")
	if p.After != "" && p.OldestFirst {
		add(" AND i.id > $%d", p.After)
	} else if p.After != "" {
		add(" AND i.id < $%d", p.After)
	}
	if f.Scope != "" {
		add(" AND s.scope = $%d", string(f.Scope))
	}
	if f.Category != "" {
		add(" AND i.category = $%d", string(f.Category))
	}
	if !f.History {
		q.WriteString(" AND i.superseded_by IS NULL")
	}
	q.WriteString(" ORDER BY i.id")
	if !p.OldestFirst {
		q.WriteString(" DESC")
	}
	q.WriteString(" LIMIT $2")
	return tx.rows(ctx, q.String(), args...)
}

// Get returns an item in view, history included, or CodeNotFound.
func (s *Store) Get(ctx context.Context, v View, id string) (Item, error) {
	if err := v.check(); err != nil {
		return Item{}, err
	}
	var found *row
	if len(plainIDs([]string{id})) == 1 {
		err := s.read(ctx, "looking up an item", func(tx txn) (err error) {
			found, err = tx.row(ctx, rowByID, id)
			return err
		})
		if err != nil {
			return Item{}, err
		}
	}
	if found == nil || !v.sees(found.place()) {
		return Item{}, sqldb.Failf(sqldb.CodeNotFound, "list or search for it", "there is no item %q here", id)
	}
	return found.Item, nil
}

// Stats counts what is in view.
func (s *Store) Stats(ctx context.Context, v View) (Stats, error) {
	stats := Stats{Scopes: map[Scope]int{}, Categories: map[turnpolicy.Category]int{}}
	if err := v.check(); err != nil {
		return stats, err
	}
	err := s.read(ctx, "counting", func(tx txn) error {
		fields, err := tx.fields(ctx, v, Filter{})
		if err != nil {
			return err
		}
		for _, f := range fields {
			if err := tx.addStats(ctx, f, &stats); err != nil {
				return err
			}
		}
		return tx.one(ctx, tx.phrase.bytes, nil, []any{&stats.Bytes})
	})
	return stats, err
}

// Untidy reports whether bytes of forgotten items may still be in the database: see [Removed.Lingering].
func (s *Store) Untidy(ctx context.Context) (untidy bool, err error) {
	err = s.read(ctx, "looking for forgotten bytes", func(tx txn) error {
		last, err := tx.meta(ctx, metaUntidy)
		untidy = last != ""
		return err
	})
	return untidy, err
}

func (tx txn) addStats(ctx context.Context, in field, stats *Stats) error {
	query := `SELECT s.scope, i.category, i.superseded_by IS NULL, count(*), CAST(sum(i.uses) AS BIGINT)
		FROM memory_items i JOIN memory_scopes s ON s.no = i.scope_no WHERE i.` + in.column + " = $1 GROUP BY 1, 2, 3"
	var scope Scope
	var category turnpolicy.Category
	var inEffect bool
	var n, uses int
	return tx.scan(ctx, query, []any{in.number}, []any{&scope, &category, &inEffect, &n, &uses}, func() {
		if !inEffect {
			stats.History += n
			return
		}
		stats.Items += n
		stats.Uses += uses
		stats.Scopes[scope] += n
		stats.Categories[category] += n
	})
}

// All yields what List returns from a page on, page by page. An error ends it. Concurrent changes may be included or not.
func (s *Store) All(ctx context.Context, v View, f Filter, p Page) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for more := true; more; more = p.After != "" {
			items, next, err := s.List(ctx, v, f, p)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			p.After = next
		}
	}
}

// Used records that items in view went into a prompt. It ignores other ids.
func (s *Store) Used(ctx context.Context, v View, ids []string, at time.Time) error {
	ids = plainIDs(ids)
	if err := v.check(); err != nil || len(ids) == 0 {
		return err
	}
	return s.change(ctx, "noting uses", func(ctx context.Context, tx txn) error {
		rows, err := tx.rowsByID(ctx, ids)
		if err != nil {
			return err
		}
		var seen []string
		var scopes []int64
		for n := range rows {
			if r := &rows[n]; v.sees(r.place()) {
				seen, scopes = append(seen, r.ID), append(scopes, r.scopeNo)
			}
		}
		if err := tx.lock(ctx, tx.phrase.share, lockClassScope, scopes...); err != nil || len(seen) == 0 {
			return err
		}
		return tx.exec(ctx, tx.phrase.used, listOf(tx.phrase, seen), nanos(at))
	})
}

// Workspaces returns the ids of the workspaces that have items, sorted.
func (s *Store) Workspaces(ctx context.Context) (list []string, err error) {
	err = s.read(ctx, "listing workspaces", func(tx txn) (err error) {
		list, err = column[string](ctx, tx, `SELECT s.workspace_id FROM memory_scopes s
			WHERE s.scope = 'workspace' AND EXISTS (SELECT 1 FROM memory_items i WHERE i.home = s.no)`)
		return err
	})
	slices.Sort(list) // databases collate differently
	return list, err
}
