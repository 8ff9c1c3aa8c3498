package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Kept is the row of a kept manifest without its record.
type Kept struct {
	manifest.Index

	// ID is the row's id: it grows in the order of appending. On a server a smaller one may appear after a larger one.
	ID int64
	// Bytes is the length of the record.
	Bytes int
	Usage *manifest.Usage
}

const keptColumns = indexColumns + ", id, bytes, " + usageOf

func scanKept(rows *sql.Rows, k *Kept) error {
	var usage sql.NullString
	err := scanIndex(rows, &k.Index, &k.ID, &k.Bytes, &usage)
	if err == nil {
		k.Usage, err = parseUsage(k.ManifestID, usage)
	}
	return err
}

// Page returns the newest selected manifests, newest first; with the whole id of a selected manifest, those before it.
// An index bounds the work by the filter's limit. A thread without a workspace must be in one only (else
// CodeAmbiguous).
func (s *Store) Page(ctx context.Context, f Filter, before string) (list []Kept, err error) {
	err = s.db.Snapshot(ctx, "reading manifests", func(tx *sql.Tx) error {
		terms, err := pageTerms(ctx, tx, f, before)
		if err != nil || terms == nil {
			return err
		}
		query, args := terms.query(keptColumns, "manifests", f.Limit)
		list, err = sqldb.List(ctx, tx, query, args, scanKept)
		return err
	})
	return list, err
}

// keptTerms are the conditions of a page, in whose order an index is.
type keptTerms struct {
	where []string
	args  []any
	order string
}

func (t *keptTerms) add(condition string, value any) {
	t.args = append(t.args, value)
	t.where = append(t.where, fmt.Sprintf("%s $%d", condition, len(t.args)))
}

func (t *keptTerms) query(columns, from string, limit int) (string, []any) {
	where := ""
	if len(t.where) > 0 {
		where = " WHERE " + strings.Join(t.where, " AND ")
	}
	args := append(slices.Clone(t.args), limit)
	return fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s DESC LIMIT $%d", columns, from, where, t.order, len(args)), args
}

// pageTerms is nil if no manifest is selected.
func pageTerms(ctx context.Context, tx *sql.Tx, f Filter, before string) (*keptTerms, error) {
	t := &keptTerms{order: "id"}
	if f.Thread != "" {
		workspaces := []string{f.Workspace}
		if f.Workspace == "" {
			var err error
			if workspaces, err = workspacesOf(ctx, tx, f.Thread); err != nil || len(workspaces) == 0 {
				return nil, err
			}
		}
		if len(workspaces) > 1 {
			return nil, sqldb.Failf(CodeAmbiguous, "name one", "several workspaces have a thread %q", f.Thread)
		}
		t.order = "seq" // the same order within a thread
		t.add("thread_id =", f.Thread)
		t.add("workspace_id =", workspaces[0])
	} else if f.Workspace != "" {
		t.add("workspace_id =", f.Workspace)
	}
	if before == "" {
		return t, nil
	}
	id, seq, err := placeOf(ctx, tx, f, before)
	if t.order == "seq" {
		t.add("seq <", seq)
	} else {
		t.add("id <", id)
	}
	return t, err
}

// placeOf returns the row's id and the number of a selected manifest.
func placeOf(ctx context.Context, tx *sql.Tx, f Filter, manifestID string) (id, seq int64, err error) {
	var found Filter
	const query = "SELECT id, seq, workspace_id, thread_id FROM manifests WHERE manifest_id = $1"
	err = sqldb.Each(ctx, tx, query, []any{strings.ToUpper(manifestID)}, func(rows *sql.Rows) error {
		return rows.Scan(&id, &seq, &found.Workspace, &found.Thread)
	})
	if err == nil && (id == 0 || f.Workspace != "" && f.Workspace != found.Workspace || f.Thread != "" && f.Thread != found.Thread) {
		err = sqldb.Failf(CodeNotFound, "retention may have removed it", "there is no manifest %.80q here", manifestID)
	}
	return id, seq, err
}

// KeptAfter returns the manifests with row ids above one, in that order, up to a limit.
func (s *Store) KeptAfter(ctx context.Context, id int64, limit int) ([]Kept, error) {
	const query = "SELECT " + keptColumns + " FROM manifests WHERE id > $1 ORDER BY id LIMIT $2"
	return sqldb.ReadList(ctx, s.db, "reading new manifests", query, []any{id, limit}, scanKept)
}

// overviewsAtOnce is how many records one query reads for overviews.
const overviewsAtOnce = 100

// Overviews reads the records of rows, one at a time, and returns their overviews in the same order. A record that was
// removed meanwhile is not among them.
func (s *Store) Overviews(ctx context.Context, list []Kept) ([]manifest.Overview, error) {
	out := make([]manifest.Overview, 0, len(list))
	for part := range slices.Chunk(list, overviewsAtOnce) {
		found, err := s.overviews(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := range part {
			if o, ok := found[part[i].ID]; ok {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

func (s *Store) overviews(ctx context.Context, list []Kept) (map[int64]manifest.Overview, error) {
	rowOf, args := make(map[int64]*Kept, len(list)), make([]any, len(list))
	for i := range list {
		rowOf[list[i].ID], args[i] = &list[i], list[i].ID
	}
	found := make(map[int64]manifest.Overview, len(list))
	query := "SELECT id, bytes, record FROM manifests WHERE id IN (" + places(len(args)) + ")"
	var u unpacker
	err := s.db.Snapshot(ctx, "reading manifests", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, query, args, func(rows *sql.Rows) error {
			var id int64
			var size int
			var packed sql.RawBytes
			if err := rows.Scan(&id, &size, &packed); err != nil {
				return err
			}
			k := rowOf[id]
			o, err := manifest.ReadOverview(k.Index, u.unpack(packed, size), k.Usage)
			found[id] = o
			return err
		})
	})
	return found, err
}

// Thread is a thread that has manifests.
type Thread struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	// Title is the one in the tree; null if the tree does not have the thread.
	Title *string `json:"title"`
	// Manifests counts those that are kept, NewestAt is when the newest was made.
	Manifests int64     `json:"manifests"`
	NewestAt  time.Time `json:"newest_at"`
	// ID is the place in the list.
	ID int64 `json:"-"`
}

// Threads returns threads that have manifests, the latest begun first, up to a limit; of one workspace unless that is
// empty, and with a thread's place, what comes behind it unless that is 0. It never returns nil without an error.
func (s *Store) Threads(ctx context.Context, workspace string, after int64, limit int) ([]Thread, error) {
	const (
		columns = "c.id, c.workspace_id, c.thread_id, c.next_seq - c.first_seq, c.last_at, t.title"
		from    = "chains c LEFT JOIN tree_threads t ON t.workspace_id = c.workspace_id AND t.id = c.thread_id AND t.deleted_at IS NULL"
	)
	t := keptTerms{where: []string{"c.next_seq > c.first_seq"}, order: "c.id"}
	if workspace != "" {
		t.add("c.workspace_id =", workspace)
	}
	if after != 0 {
		t.add("c.id <", after)
	}
	query, args := t.query(columns, from, limit)
	return sqldb.ReadList(ctx, s.db, "reading threads", query, args, func(rows *sql.Rows, t *Thread) error {
		return rows.Scan(&t.ID, &t.WorkspaceID, &t.ThreadID, &t.Manifests, sqldb.Nanos{To: &t.NewestAt}, &t.Title)
	})
}
