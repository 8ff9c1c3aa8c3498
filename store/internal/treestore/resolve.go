package treestore

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// The query finds the document in effect for one thing in a workspace, in one walk to the root:
// the depth, the start, the names of the folders down to the document, and the document. A null
// start is a missing thing, an empty one the root.
//
// The conditions repeat those of the partial indexes, which are not used otherwise. Names have no line breaks, which
// join them. Ids have their own collation in PostgreSQL; nullif gives a null of that type.
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
	WHERE p.node = up.parent AND up.depth < ` + damagedText + `)
SELECT up.depth, up.start, up.path, ` + docColumns + `
FROM up LEFT JOIN thread_agents_doc d ON d.id = CASE WHEN up.source IS NULL
	THEN (SELECT r.id FROM thread_agents_doc r
		WHERE r.workspace_id = $1 AND r.folder_id IS NULL AND r.status <> 'archived' AND r.status = 'active')
	ELSE (SELECT f.id FROM thread_agents_doc f
		WHERE f.workspace_id = $1 AND f.folder_id = up.source AND f.folder_id IS NOT NULL AND f.status <> 'archived' AND f.status = 'active') END
WHERE up.parent IS NULL OR up.depth = ` + damagedText

	forThread = resolveBegin + `CASE WHEN t.id IS NOT NULL THEN coalesce(t.folder_id, '') END, nullif(w.id, w.id), CAST('' AS TEXT)
	FROM tree_workspaces w
		LEFT JOIN tree_threads t ON t.workspace_id = w.id AND t.id = $2 AND t.deleted_at IS NULL
		LEFT JOIN tree_folders s ON s.workspace_id = w.id AND s.id = t.folder_id` + resolveEnd
	forFolder = resolveBegin + `s.id, nullif(w.id, w.id), CAST('' AS TEXT)
	FROM tree_workspaces w
		LEFT JOIN tree_folders s ON s.workspace_id = w.id AND s.id = $2 AND s.deleted_at IS NULL` + resolveEnd
)

type resolved struct {
	depth int
	start sql.NullString
	path  string
	doc   tree.Doc // zero for none
}

func (r *resolved) into() []any {
	return append([]any{&r.depth, &r.start, &r.path}, into(&r.doc, sqldb.OrZero(&r.doc.Content))...)
}

// check judges what a query found; it finds no row without the workspace.
func (r *resolved) check(workspace string, ok bool, err error) error {
	if err == nil && !ok {
		err = noWorkspace(workspace)
	} else if err == nil && r.depth >= damagedDepth {
		err = damaged(workspace)
	}
	return err
}

func (r *resolved) effective(at time.Time) *tree.Effective {
	if r.doc.ID == "" {
		return nil
	}
	path := []string{}
	if r.path != "" {
		path = strings.Split(r.path[1:], "\n")
	}
	start := tree.FolderID(r.start.String)
	return &tree.Effective{
		Doc: r.doc, SourceFolderID: r.doc.FolderID, SourcePath: path,
		Inherited: r.doc.FolderID != start, ResolvedForFolderID: start, ResolvedAt: at,
	}
}

func resolveScope(ctx context.Context, tx txn, scope tree.Scope) (*resolved, error) {
	var got resolved
	ok, err := tx.one(ctx, forFolder, []any{scope.WorkspaceID, nullable(scope.FolderID)}, got.into())
	err = got.check(scope.WorkspaceID, ok, err)
	if err == nil && !got.start.Valid && scope.FolderID != "" {
		err = notFound("folder", string(scope.FolderID))
	}
	return &got, err
}

// Resolve implements [tree.Store], in one statement without a transaction.
func (s *Store) Resolve(ctx context.Context, t tree.ThreadRef) (tree.Resolution, error) {
	if err := tree.Check(t); err != nil {
		return tree.Resolution{}, err
	}
	var got resolved
	ok, err := found(s.reading[forThread].QueryRowContext(ctx, t.WorkspaceID, t.ThreadID).Scan(got.into()...))
	if err := got.check(t.WorkspaceID, ok, err); err != nil {
		return tree.Resolution{}, outcome(s.db.Fail(ctx, "resolving", err))
	}
	return tree.Resolution{Effective: got.effective(s.now()), Known: got.start.Valid}, nil
}

// Doc implements [tree.Store].
func (s *Store) Doc(ctx context.Context, scope tree.Scope) (tree.View, error) {
	var view tree.View
	err := s.read(ctx, "reading a document", scope, func(tx txn) error {
		got, err := resolveScope(ctx, tx, scope)
		if err != nil {
			return err
		}
		view.Effective = got.effective(s.now())
		query, args := live(scope, docColumns)
		var d tree.Doc
		ok, err := tx.one(ctx, query, args, into(&d, &d.Content))
		if ok {
			view.Explicit = &d
		}
		return err
	})
	return view, err
}

// Affected implements [tree.Store]. It walks down, but not into folders with an active document of their own.
func (s *Store) Affected(ctx context.Context, scope tree.Scope) (int, error) {
	const inherits = " AND NOT f.has_doc"
	child, args := inScope("f.parent_id", scope)
	query := `WITH RECURSIVE below(id, depth) AS (
		SELECT f.id, 1 FROM tree_folders f WHERE ` + child + ` AND f.deleted_at IS NULL` + inherits + `
		UNION ALL
		SELECT f.id, below.depth + 1 FROM below CROSS JOIN tree_folders f
			WHERE f.workspace_id = $1 AND f.parent_id = below.id AND f.deleted_at IS NULL` + inherits + ` AND below.depth < ` + damagedText + `)
		SELECT count(*), coalesce(max(depth), 0) FROM below`
	var n, depth int
	err := s.read(ctx, "counting what is affected", scope, func(tx txn) error {
		if err := s.hold(ctx, tx, scope, ""); err != nil {
			return err
		}
		_, err := tx.one(ctx, query, args, []any{&n, &depth})
		if err == nil && depth >= damagedDepth {
			err = damaged(scope.WorkspaceID)
		}
		return err
	})
	return n, err
}
