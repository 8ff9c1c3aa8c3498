package treestore

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// The query that finds the document in effect for one thing in a workspace, in one
// walk from there to the root: how deep that goes, where it began, the names of the
// folders down to the document, and the document. A start that is null is that of a
// thing that is not there, and an empty one is the root.
//
// The conditions on documents repeat what their partial indexes are about, or those
// could not be used. A name has no line break, so that names are joined by those.
// Columns of ids have a collation of their own in PostgreSQL, and nullif gives a null
// of the same type.
const (
	resolveBegin = `WITH RECURSIVE up(parent, depth, start, source, path) AS (
	SELECT s.node, 0, `
	resolveEnd = `
	WHERE w.id = $1 AND w.deleted_at IS NULL
	UNION ALL
	SELECT p.parent, up.depth + 1, up.start,
		CASE WHEN up.source IS NULL AND p.has_doc THEN p.id ELSE up.source END,
		CASE WHEN up.source IS NOT NULL OR p.has_doc THEN '` + "\n" + `' || p.name || up.path ELSE '' END
	FROM up CROSS JOIN tree_folders p
	WHERE p.node = up.parent AND up.depth < ` + damagedDepth + `)
SELECT up.depth, up.start, up.path, ` + docColumns + `
FROM up LEFT JOIN thread_agents_doc d ON d.id = CASE WHEN up.source IS NULL
	THEN (SELECT r.id FROM thread_agents_doc r
		WHERE r.workspace_id = $1 AND r.folder_id IS NULL AND r.status <> 'archived' AND r.status = 'active')
	ELSE (SELECT f.id FROM thread_agents_doc f
		WHERE f.workspace_id = $1 AND f.folder_id = up.source AND f.folder_id IS NOT NULL AND f.status <> 'archived' AND f.status = 'active') END
WHERE up.parent IS NULL OR up.depth = ` + damagedDepth

	// forThread is the query for a thread, forFolder that for a folder; the root is a
	// folder that is null.
	forThread = resolveBegin + `CASE WHEN t.id IS NOT NULL THEN coalesce(t.folder_id, '') END, nullif(w.id, w.id), CAST('' AS TEXT)
	FROM tree_workspaces w
		LEFT JOIN tree_threads t ON t.workspace_id = w.id AND t.id = $2 AND t.deleted_at IS NULL
		LEFT JOIN tree_folders s ON s.workspace_id = w.id AND s.id = t.folder_id` + resolveEnd
	forFolder = resolveBegin + `s.id, nullif(w.id, w.id), CAST('' AS TEXT)
	FROM tree_workspaces w
		LEFT JOIN tree_folders s ON s.workspace_id = w.id AND s.id = $2 AND s.deleted_at IS NULL` + resolveEnd
)

// resolved is what a resolver found.
type resolved struct {
	depth int
	start sql.NullString
	path  string
	// The document's columns are all null for none.
	id, workspace, folder, status, title, sum, createdBy, updatedBy, content sql.NullString
	version, created, updated                                                sql.NullInt64
}

// into are the destinations of the query's columns.
func (r *resolved) into() []any {
	return []any{
		&r.depth, &r.start, &r.path, &r.id, &r.workspace, &r.folder, &r.status, &r.title, &r.sum,
		&r.version, &r.created, &r.updated, &r.createdBy, &r.updatedBy, &r.content,
	}
}

// known says that what was asked for is there.
func (r *resolved) known() bool { return r.start.Valid }

// check judges what a query found. No row means that there is no such workspace, or
// that the walk did not end at the root.
func (r *resolved) check(workspace string, ok bool, err error) error {
	switch {
	case err != nil:
		return err
	case !ok:
		return noWorkspace(workspace)
	case r.depth >= tree.DamagedDepth:
		return damaged(workspace)
	}
	return nil
}

// effective is the document that was found, nil for none.
func (r *resolved) effective(at time.Time) *tree.Effective {
	if !r.id.Valid {
		return nil
	}
	doc := tree.Doc{
		ID: r.id.String, WorkspaceID: r.workspace.String, FolderID: tree.FolderID(r.folder.String), Status: tree.Status(r.status.String),
		Title: r.title.String, Content: r.content.String, ContentSHA256: r.sum.String, Version: r.version.Int64,
		CreatedAt: fromNanos(r.created.Int64), UpdatedAt: fromNanos(r.updated.Int64), CreatedBy: r.createdBy.String, UpdatedBy: r.updatedBy.String,
	}
	path := []string{}
	if r.path != "" {
		path = strings.Split(r.path[1:], "\n")
	}
	start := tree.FolderID(r.start.String)
	return &tree.Effective{
		Doc: doc, SourceFolderID: doc.FolderID, SourcePath: path,
		Inherited: doc.FolderID != start, ResolvedForFolderID: start, ResolvedAt: at,
	}
}

// resolveScope looks for the document in effect for a scope, which must be there.
func resolveScope(ctx context.Context, tx txn, scope tree.Scope) (*resolved, error) {
	var got resolved
	ok, err := tx.one(ctx, forFolder, []any{scope.WorkspaceID, nullable(scope.FolderID)}, got.into())
	err = got.check(scope.WorkspaceID, ok, err)
	if err == nil && !got.known() && scope.FolderID != "" {
		err = notFound("folder", string(scope.FolderID))
	}
	return &got, err
}

// Resolve implements [tree.Store]. It is one statement, and needs no transaction.
func (s *Store) Resolve(ctx context.Context, t tree.ThreadRef) (tree.Resolution, error) {
	if err := t.Check(); err != nil {
		return tree.Resolution{}, err
	}
	var got resolved
	ok, err := found(s.reading[forThread].QueryRowContext(ctx, t.WorkspaceID, t.ThreadID).Scan(got.into()...))
	if err := got.check(t.WorkspaceID, ok, err); err != nil {
		return tree.Resolution{}, outcome(s.db.Fail(ctx, "resolving", err))
	}
	return tree.Resolution{Effective: got.effective(s.now()), Known: got.known()}, nil
}

// Doc implements [tree.Store].
func (s *Store) Doc(ctx context.Context, scope tree.Scope) (tree.View, error) {
	var view tree.View
	if err := scope.Check(); err != nil {
		return view, err
	}
	err := s.read(ctx, "reading a document", func(tx txn) error {
		got, err := resolveScope(ctx, tx, scope)
		if err != nil {
			return err
		}
		view.Effective = got.effective(s.now())
		query, args := live(scope, docColumns)
		var h head
		ok, err := tx.one(ctx, query, args, append(h.into(), &h.doc.Content))
		if ok {
			view.Explicit = h.read()
		}
		return err
	})
	return view, err
}
