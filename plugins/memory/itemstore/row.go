package itemstore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// row is an item as it is kept.
type row struct {
	Item

	seq           int64
	home, scopeNo int64
	length        int
	terms         terms
}

// columns are those of a row, of the tables i and s.
const columns = `i.seq, i.home, i.scope_no, i.length, i.terms, i.id, s.workspace_id, s.scope, s.scope_id, i.category, i.text, i.evidence,
	i.source, i.slot, i.created_at, i.updated_at, i.last_used_at, i.uses, i.supersedes, coalesce(i.superseded_by, ''), i.hash`

// selectRows begins a query for rows.
const selectRows = "SELECT " + columns + " FROM memory_items i JOIN memory_scopes s ON s.no = i.scope_no WHERE "

// scan reads a row.
func (r *row) scan(rows *sql.Rows) error {
	var created, updated, used int64
	err := rows.Scan(&r.seq, &r.home, &r.scopeNo, &r.length, &r.terms, &r.ID, &r.WorkspaceID, &r.Scope, &r.ScopeID, &r.Category, &r.Text,
		&r.Evidence, &r.Source, &r.Slot, &created, &updated, &used, &r.Uses, &r.Supersedes, &r.SupersededBy, &r.Hash)
	r.CreatedAt, r.UpdatedAt, r.LastUsedAt = fromNanos(created), fromNanos(updated), fromNanos(used)
	return err
}

// rows returns the rows of a query.
func (tx txn) rows(ctx context.Context, text string, args ...any) ([]row, error) {
	var all []row
	err := tx.each(ctx, text, args, func(rows *sql.Rows) error {
		var r row
		if err := r.scan(rows); err != nil {
			return err
		}
		all = append(all, r)
		return nil
	})
	return all, err
}

// row returns the only row of a query, or nil.
func (tx txn) row(ctx context.Context, text string, args ...any) (*row, error) {
	all, err := tx.rows(ctx, text, args...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// place is where the item is.
func (i *Item) place() place { return place{i.WorkspaceID, i.Scope, i.ScopeID} }

// pinned says that an item always comes.
func (i *Item) pinned() bool { return i.Category == turnpolicy.Instruction }

// nanos is a time as it is kept; 0 is never.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// fromNanos is a time that was kept.
func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// terms are those of a text as they are kept: sorted, with blanks between them, and
// ":n" behind those that occur more than once. Terms hold neither.
type terms string

// termsOf are the terms of a text, and their number.
func termsOf(text string) (list terms, length int) {
	counts, length := recall.Index(text)
	var b strings.Builder
	for _, term := range slices.Sorted(maps.Keys(counts)) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(term)
		if n := counts[term]; n > 1 {
			fmt.Fprintf(&b, ":%d", n)
		}
	}
	return terms(b.String()), length
}

// each calls do for each term, with how often it occurs.
func (t terms) each(do func(term string, n int)) {
	for part := range strings.FieldsSeq(string(t)) {
		term, count, more := strings.Cut(part, ":")
		n := 1
		if more {
			n, _ = strconv.Atoi(count) // 0 where the database was damaged: the term is as if it were not there
		}
		do(term, n)
	}
}

// counts returns how often those terms occur that are wanted.
func (t terms) counts(wanted map[string]bool) map[string]int {
	found := make(map[string]int, len(wanted))
	t.each(func(term string, n int) {
		if wanted[term] {
			found[term] = n
		}
	})
	return found
}
