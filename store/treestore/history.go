package treestore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/grapnelhq/grapnel/tree"
)

// contentIf is a column with a text, or without it.
func contentIf(wanted bool) string {
	if wanted {
		return "content"
	}
	return "NULL"
}

// Revisions implements [tree.Store].
func (s *Store) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	list := []tree.Revision{}
	err := s.read(ctx, "reading revisions", func(tx txn) error {
		id, err := s.revised(ctx, tx, q)
		if err != nil {
			return err
		}
		query := "SELECT doc_id, version, content_sha256, chars, saved_at, saved_by, save_reason, " + contentIf(q.IncludeContent) +
			" FROM thread_agents_doc_revision WHERE doc_id = $1"
		args := []any{id, cmp.Or(q.Limit, tree.DefaultLimit)}
		if q.BeforeVersion > 0 {
			query += " AND version < $3"
			args = append(args, q.BeforeVersion)
		}
		return each(ctx, tx, query+" ORDER BY version DESC LIMIT $2", args, &list, func(rows *sql.Rows, r *tree.Revision) error {
			var at int64
			err := rows.Scan(&r.DocID, &r.Version, &r.ContentSHA256, &r.Chars, &at, &r.SavedBy, &r.SaveReason, &r.Content)
			r.SavedAt = fromNanos(at)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// revised is the id of the document that a query is about. One that is named may be
// in whatever scope of the workspace, deleted ones included.
func (s *Store) revised(ctx context.Context, tx txn, q tree.RevisionQuery) (string, error) {
	query, args := "SELECT id FROM thread_agents_doc WHERE workspace_id = $1 AND id = $2", []any{q.WorkspaceID, q.DocID}
	place := tree.Scope{WorkspaceID: q.WorkspaceID}
	if q.DocID == "" {
		query, args = live(q.Scope, "d.id")
		place = q.Scope
	}
	if err := s.hold(ctx, tx, place, ""); err != nil {
		return "", err
	}
	var id string
	ok, err := tx.one(ctx, query, args, []any{&id})
	if err == nil && !ok {
		err = notFound("document", q.DocID)
	}
	return id, err
}

// ArchivedDocs implements [tree.Store]. Who archived a document changed it last.
func (s *Store) ArchivedDocs(ctx context.Context, q tree.ArchivedQuery) ([]tree.ArchivedDoc, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	place := q.Scope
	in, args := inScope("folder_id", q.Scope)
	if q.All {
		place.FolderID = ""
		in, args = "workspace_id = $1", []any{q.WorkspaceID}
	}
	query := "SELECT " + summaryColumns + ", archived_at, updated_by, " + contentIf(q.IncludeContent) + " FROM thread_agents_doc WHERE " + in +
		fmt.Sprintf(" AND status = 'archived' ORDER BY archived_seq DESC, id DESC LIMIT $%d", len(args)+1)
	args = append(args, cmp.Or(q.Limit, tree.DefaultLimit))
	list := []tree.ArchivedDoc{}
	err := s.read(ctx, "listing archived documents", func(tx txn) error {
		if err := s.hold(ctx, tx, place, ""); err != nil {
			return err
		}
		return each(ctx, tx, query, args, &list, func(rows *sql.Rows, d *tree.ArchivedDoc) error {
			var at int64
			err := scanSummary(rows, &d.Summary, &at, &d.ArchivedBy, &d.Content)
			d.ArchivedAt = fromNanos(at)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Affected implements [tree.Store]: it walks down from the scope, and not into
// folders that have an active document of their own.
func (s *Store) Affected(ctx context.Context, scope tree.Scope) (int, error) {
	if err := scope.Check(); err != nil {
		return 0, err
	}
	const inherits = " AND NOT f.has_doc"
	child, args := inScope("f.parent_id", scope)
	query := `WITH RECURSIVE below(id, depth) AS (
		SELECT f.id, 1 FROM tree_folders f WHERE ` + child + ` AND f.deleted_at IS NULL` + inherits + `
		UNION ALL
		SELECT f.id, below.depth + 1 FROM below CROSS JOIN tree_folders f
			WHERE f.workspace_id = $1 AND f.parent_id = below.id AND f.deleted_at IS NULL` + inherits + ` AND below.depth < ` + damagedDepth + `)
		SELECT count(*), coalesce(max(depth), 0) FROM below`
	var n, depth int
	err := s.read(ctx, "counting what is affected", func(tx txn) error {
		if err := s.hold(ctx, tx, scope, ""); err != nil {
			return err
		}
		_, err := tx.one(ctx, query, args, []any{&n, &depth})
		if err == nil && depth >= tree.DamagedDepth {
			err = damaged(scope.WorkspaceID)
		}
		return err
	})
	return n, err
}
