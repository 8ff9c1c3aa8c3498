package treestore

import (
	"context"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// below begins a statement about the folders below a scope: table below(id, depth), where 1 is
// a child. CROSS JOIN fixes the order of tables, which SQLite would guess wrongly.
func below(scope tree.Scope) (string, []any) {
	child, args := inScope("parent_id", scope)
	return `WITH RECURSIVE below(id, depth) AS (
		SELECT id, 1 FROM tree_folders WHERE ` + child + ` AND deleted_at IS NULL
		UNION ALL
		SELECT f.id, below.depth + 1 FROM below CROSS JOIN tree_folders f
			WHERE f.workspace_id = $1 AND f.parent_id = below.id AND f.deleted_at IS NULL AND below.depth < ` + damagedText + `) `, args
}

// above queries the folders from a place upwards, as up(id, parent_id, depth); the place itself is 1.
const above = `WITH RECURSIVE up(id, parent_id, depth) AS (
	SELECT id, parent_id, 1 FROM tree_folders WHERE workspace_id = $1 AND id = $2
	UNION ALL
	SELECT p.id, p.parent_id, up.depth + 1 FROM up CROSS JOIN tree_folders p
		WHERE p.workspace_id = $1 AND p.id = up.parent_id AND up.depth < ` + damagedText + `) `

// nodeOf is the node of the folder $3 of workspace $1; null for the root.
const nodeOf = "(SELECT p.node FROM tree_folders p WHERE p.workspace_id = $1 AND p.id = $3)"

const (
	// damagedDepth stops walks through a damaged tree.
	damagedDepth = 256
	damagedText  = "256" // in statements
	// maxMove bounds the folders below one that is moved: moving needs their depth, with the tree locked.
	maxMove = 10_000
)

func damaged(workspace string) error {
	return tree.Errorf(tree.CodeCycle, "workspace %q: the tree is damaged: folders lie below themselves; repair tree_folders", workspace)
}

func tooDeep() error {
	return tree.Errorf(tree.CodeInvalid, "parent_id: folders would be more than %d deep", tree.MaxDepth)
}

func (s *Store) folder(ctx context.Context, tx txn, workspace, id string) (tree.Folder, error) {
	f := tree.Folder{ID: id}
	const query = "SELECT parent_id, name FROM tree_folders WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL"
	ok, err := tx.one(ctx, query, []any{workspace, id}, []any{sqldb.OrZero(&f.ParentID), &f.Name})
	if err == nil && !ok {
		err = notFound("folder", id)
	}
	return f, err
}

// owned is folder for one that the transaction changes: it locks the workspace's row first, as
// all changes of folders do.
func (s *Store) owned(ctx context.Context, tx txn, workspace, id string) (tree.Folder, error) {
	if _, err := s.own(ctx, tx, workspace, s.phrase.own); err != nil {
		return tree.Folder{}, err
	}
	return s.folder(ctx, tx, workspace, id)
}

// depth returns how deep a place lies (the root is 0), and whether it is a folder or below it.
func (s *Store) depth(ctx context.Context, tx txn, place tree.Scope, folder string) (depth int, inside bool, err error) {
	if place.FolderID == "" {
		return 0, false, nil
	}
	var hits int
	_, err = tx.one(ctx, above+"SELECT count(*), count(CASE WHEN id = $3 THEN 1 END) FROM up",
		[]any{place.WorkspaceID, string(place.FolderID), folder}, []any{&depth, &hits})
	if err == nil && depth >= damagedDepth {
		err = damaged(place.WorkspaceID)
	}
	return depth, hits > 0, err
}

// height returns the height and number of the folders below a scope; it looks at no more than most.
func (s *Store) height(ctx context.Context, tx txn, scope tree.Scope, most int) (height, folders int, err error) {
	with, args := below(scope)
	query := with + "SELECT coalesce(max(depth), 0), count(*) FROM (SELECT depth FROM below LIMIT " + strconv.Itoa(most) + ") b"
	_, err = tx.one(ctx, query, args, []any{&height, &folders})
	if err == nil && height >= damagedDepth {
		err = damaged(scope.WorkspaceID)
	}
	return height, folders, err
}

// CreateFolder implements [tree.Store].
func (s *Store) CreateFolder(ctx context.Context, p tree.CreateFolder) (tree.Folder, error) {
	id, err := s.newID(p.ID)
	if err != nil {
		return tree.Folder{}, err
	}
	f := tree.Folder{ID: id, ParentID: p.ParentID, Name: p.Name}
	err = s.change(ctx, "creating a folder", p, func(ctx context.Context, tx txn) error {
		if _, err := s.own(ctx, tx, p.WorkspaceID, s.phrase.own); err != nil {
			return err
		}
		if p.ParentID != "" {
			if _, err := s.folder(ctx, tx, p.WorkspaceID, string(p.ParentID)); err != nil {
				return err
			}
		}
		return s.createFolder(ctx, tx, p.WorkspaceID, f, p.Actor)
	})
	return f, err
}

func (s *Store) createFolder(ctx context.Context, tx txn, workspace string, f tree.Folder, actor string) error {
	n, err := tx.exec(ctx, `INSERT INTO tree_folders (workspace_id, id, parent_id, name, created_at, created_by, parent)
		VALUES ($1, $2, $3, $4, $5, $6, `+nodeOf+`) ON CONFLICT DO NOTHING`, workspace, f.ID, nullable(f.ParentID), f.Name, s.now().UnixNano(), actor)
	if err != nil {
		return err
	}
	if n == 0 {
		had, err := s.folder(ctx, tx, workspace, f.ID)
		if tree.HasCode(err, tree.CodeNotFound) || err == nil && had != f {
			return taken(f.ID)
		}
		return err
	}
	depth, _, err := s.depth(ctx, tx, tree.Scope{WorkspaceID: workspace, FolderID: f.ParentID}, f.ID)
	if err != nil {
		return err
	}
	if depth+1 > tree.MaxDepth {
		return tooDeep()
	}
	return s.logItem(ctx, tx, workspace, actor, ofFolder, tree.Created, f.ID, f.ParentID, f.Name)
}

// RenameFolder implements [tree.Store].
func (s *Store) RenameFolder(ctx context.Context, p tree.RenameFolder) (f tree.Folder, err error) {
	err = s.change(ctx, "renaming a folder", p, func(ctx context.Context, tx txn) (err error) {
		if f, err = s.owned(ctx, tx, p.WorkspaceID, p.FolderID); err != nil || f.Name == p.Name {
			return err
		}
		f.Name = p.Name
		const update = "UPDATE tree_folders SET name = $3 WHERE workspace_id = $1 AND id = $2"
		if _, err := tx.exec(ctx, update, p.WorkspaceID, f.ID, f.Name); err != nil {
			return err
		}
		return s.logItem(ctx, tx, p.WorkspaceID, p.Actor, ofFolder, tree.Renamed, f.ID, f.ParentID, f.Name)
	})
	return f, err
}

// MoveFolder implements [tree.Store].
func (s *Store) MoveFolder(ctx context.Context, p tree.MoveFolder) (f tree.Folder, err error) {
	err = s.change(ctx, "moving a folder", p, func(ctx context.Context, tx txn) (err error) {
		if f, err = s.owned(ctx, tx, p.WorkspaceID, p.FolderID); err != nil {
			return err
		}
		if p.ParentID != "" {
			if _, err := s.folder(ctx, tx, p.WorkspaceID, string(p.ParentID)); err != nil {
				return err
			}
		}
		if f.ParentID == p.ParentID {
			return nil
		}
		if err := s.checkMove(ctx, tx, p); err != nil {
			return err
		}
		f.ParentID = p.ParentID
		const update = "UPDATE tree_folders SET parent_id = $3, parent = " + nodeOf + " WHERE workspace_id = $1 AND id = $2"
		if _, err := tx.exec(ctx, update, p.WorkspaceID, f.ID, nullable(f.ParentID)); err != nil {
			return err
		}
		return s.logItem(ctx, tx, p.WorkspaceID, p.Actor, ofFolder, tree.Moved, f.ID, f.ParentID, f.Name)
	})
	return f, err
}

// checkMove refuses cycles, and folders that would become too deep.
func (s *Store) checkMove(ctx context.Context, tx txn, p tree.MoveFolder) error {
	depth, inside, err := s.depth(ctx, tx, tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: p.ParentID}, p.FolderID)
	if err != nil {
		return err
	}
	if inside {
		return tree.Errorf(tree.CodeCycle, "parent_id: folder %q would be below itself", p.FolderID)
	}
	height, folders, err := s.height(ctx, tx, tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: tree.FolderID(p.FolderID)}, maxMove+1)
	if err != nil {
		return err
	}
	if folders > maxMove {
		return tree.Errorf(tree.CodeInvalid, "folder %q: there are more than %d folders below it; move those first", p.FolderID, maxMove)
	}
	if depth+1+height > tree.MaxDepth {
		return tooDeep()
	}
	return nil
}
