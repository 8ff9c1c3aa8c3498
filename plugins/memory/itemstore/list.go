package itemstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

const defaultPage = 50

// List returns items, by their ids: that is in the order in which they were first
// said, the newest first unless p says otherwise. Next is for the page after this one,
// and empty at the end. What changes meanwhile does not make others be missed.
func (s *Store) List(ctx context.Context, v View, f Filter, p Page) (items []Item, next string, err error) {
	if err := checkList(v, f, p); err != nil {
		return nil, "", err
	}
	limit := p.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, MaxPage)
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

func checkList(v View, f Filter, p Page) error {
	if err := v.check(); err != nil {
		return err
	}
	switch {
	case f.Scope != "" && !slices.Contains(Scopes(), f.Scope):
		return invalidf("", "there is no scope %q", f.Scope)
	case f.ScopeID != "" && f.Scope == "":
		return invalidf("", "the id of a scope without the scope")
	case f.Category != "" && !slices.Contains(turnpolicy.Categories(), f.Category):
		return invalidf("", "there is no category %q", f.Category)
	}
	if err := checkName("the id of the scope", f.ScopeID, MaxName); err != nil {
		return err
	}
	return checkName("where the page begins", p.After, MaxName)
}

// field is a part of the items: those of a scope, or all of a workspace.
type field struct {
	column string
	number int64
}

// The columns of a field.
const (
	byHome  = "home"
	byScope = "scope_no"
)

// fields are the parts of the items that a view and a filter are about; they have
// nothing in common.
func (tx txn) fields(ctx context.Context, v View, f Filter) ([]field, error) {
	var list []field
	places := v.places()
	if v.AllScopes {
		places = []place{home(v.WorkspaceID)}
	}
	numbers, err := tx.look(ctx, places)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		switch no := numbers[p]; {
		case no == 0:
		case v.AllScopes:
			list = append(list, field{byHome, no})
		case f.Scope == "" || f.Scope == p.scope:
			list = append(list, field{byScope, no})
		}
	}
	if !v.UserEverywhere || v.UserID == "" || f.Scope != "" && f.Scope != ScopeUser {
		return list, nil
	}
	err = tx.each(ctx, "SELECT no FROM memory_scopes WHERE scope = $1 AND scope_id = $2",
		[]any{string(ScopeUser), v.UserID}, func(rows *sql.Rows) error {
			var no int64
			if err := rows.Scan(&no); err != nil {
				return err
			}
			list = append(list, field{byScope, no})
			return nil
		})
	return list, err
}

// page reads a page of a field.
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
	if f.ScopeID != "" {
		add(" AND s.scope_id = $%d", f.ScopeID)
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

// Get returns an item in view, also one that is history. It is CodeNotFound where
// there is none.
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
			if err := tx.tally(ctx, f, &stats); err != nil {
				return err
			}
		}
		untidy, err := tx.meta(ctx, metaUntidy)
		if err != nil {
			return err
		}
		stats.Untidy = untidy != ""
		return tx.one(ctx, tx.phrase.bytes, nil, []any{&stats.Bytes})
	})
	return stats, err
}

// tally adds a field to the statistics.
func (tx txn) tally(ctx context.Context, in field, stats *Stats) error {
	query := `SELECT s.scope, i.category, i.superseded_by IS NULL, count(*), CAST(sum(i.uses) AS BIGINT)
		FROM memory_items i JOIN memory_scopes s ON s.no = i.scope_no WHERE i.` + in.column + " = $1 GROUP BY 1, 2, 3"
	return tx.each(ctx, query, []any{in.number}, func(rows *sql.Rows) error {
		var scope Scope
		var category turnpolicy.Category
		var inEffect bool
		var n, uses int
		if err := rows.Scan(&scope, &category, &inEffect, &n, &uses); err != nil {
			return err
		}
		if !inEffect {
			stats.History += n
			return nil
		}
		stats.Items += n
		stats.Uses += uses
		stats.Scopes[scope] += n
		stats.Categories[category] += n
		return nil
	})
}

// Export calls do for each item in view, history included, the oldest first. What
// changes meanwhile may be in it or not. An error of do ends it, and is returned.
func (s *Store) Export(ctx context.Context, v View, do func(Item) error) error {
	p := Page{Limit: MaxPage, OldestFirst: true}
	for {
		items, next, err := s.List(ctx, v, Filter{History: true}, p)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := do(item); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		p.After = next
	}
}

// Used notes that items in view went into a prompt at a time. Others are passed over.
func (s *Store) Used(ctx context.Context, v View, ids []string, at time.Time) error {
	ids = plainIDs(ids)
	if err := v.check(); err != nil || len(ids) == 0 {
		return err
	}
	return s.change(ctx, "noting uses", func(ctx context.Context, tx txn) error {
		rows, err := tx.rows(ctx, selectRows+tx.phrase.in("i.id", "$1"), listOf(tx.phrase, ids))
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
		if err := tx.share(ctx, lockClassScope, scopes...); err != nil || len(seen) == 0 {
			return err
		}
		_, err = tx.exec(ctx, tx.phrase.used, listOf(tx.phrase, seen), nanos(at))
		return err
	})
}
