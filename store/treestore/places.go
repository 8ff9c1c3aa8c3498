package treestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/grapnelhq/grapnel/tree"
)

// The queries that look whether a place is there.
const (
	workspaceIsThere = "SELECT name FROM tree_workspaces WHERE id = $1 AND deleted_at IS NULL"
	folderIsThere    = `SELECT w.name FROM tree_workspaces w JOIN tree_folders f ON f.workspace_id = w.id
		WHERE w.id = $1 AND w.deleted_at IS NULL AND f.id = $2 AND f.deleted_at IS NULL`
)

func noWorkspace(id string) error {
	return tree.Errorf(tree.CodeNotFound, "workspace %q: not there", id)
}

func notFound(what, id string) error {
	return tree.Errorf(tree.CodeNotFound, "%s %q: not in this workspace", what, id)
}

func taken(id string) error { return tree.Errorf(tree.CodeInvalid, "id: %q is taken, or was", id) }

// workspace returns a workspace that is there; mode says how its row is locked.
func (s *Store) workspace(ctx context.Context, tx txn, id, mode string) (tree.Workspace, error) {
	w := tree.Workspace{ID: id}
	ok, err := tx.one(ctx, workspaceIsThere+mode, []any{id}, []any{&w.Name})
	if err == nil && !ok {
		err = noWorkspace(id)
	}
	return w, err
}

// hold makes sure that a place is there; mode says how a folder is kept from going
// away.
func (s *Store) hold(ctx context.Context, tx txn, scope tree.Scope, mode string) error {
	if scope.FolderID == "" {
		_, err := s.workspace(ctx, tx, scope.WorkspaceID, "") // who deletes it waits for all
		return err
	}
	var name string
	ok, err := tx.one(ctx, folderIsThere+mode, []any{scope.WorkspaceID, string(scope.FolderID)}, []any{&name})
	if ok || err != nil {
		return err
	}
	if _, err := s.workspace(ctx, tx, scope.WorkspaceID, ""); err != nil {
		return err
	}
	return notFound("folder", string(scope.FolderID))
}

// own returns a workspace that is there and waits for all others who change
// something in it; mode says how its row is locked besides.
func (s *Store) own(ctx context.Context, tx txn, id, mode string) (tree.Workspace, error) {
	if s.phrase.queue != "" {
		if _, err := tx.exec(ctx, s.phrase.queue, "tree "+id); err != nil {
			return tree.Workspace{}, err
		}
	}
	return s.workspace(ctx, tx, id, mode)
}

// enter makes sure that a place is there and stays, and waits for others who change
// the same item of the workspace, or folders.
func (s *Store) enter(ctx context.Context, tx txn, scope tree.Scope, k kind, id string) error {
	if s.phrase.queueBeside != "" {
		_, err := tx.exec(ctx, s.phrase.queueBeside, "tree "+scope.WorkspaceID, "tree "+scope.WorkspaceID+" "+string(k)+" "+id)
		if err != nil {
			return err
		}
	}
	return s.hold(ctx, tx, scope, s.phrase.share)
}

// CreateWorkspace implements [tree.Store].
func (s *Store) CreateWorkspace(ctx context.Context, p tree.CreateWorkspace) (tree.Workspace, error) {
	w := tree.Workspace{Name: p.Name}
	err := s.creating(p.Check(), &w.ID, p.ID)
	if err != nil {
		return w, err
	}
	err = s.change(ctx, "creating a workspace", func(ctx context.Context, tx txn) error {
		d, err := s.deed(ctx, tx, w.ID, p.Actor)
		if err != nil {
			return err
		}
		n, err := tx.exec(ctx, `INSERT INTO tree_workspaces (id, name, created_at, created_by) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`, w.ID, w.Name, d.at.UnixNano(), p.Actor)
		if err != nil {
			return err
		}
		if n == 1 {
			return s.logItem(ctx, tx, d, ofWorkspace, tree.Created, w.ID, "", w.Name)
		}
		had, err := s.workspace(ctx, tx, w.ID, "")
		if tree.HasCode(err, tree.CodeNotFound) || err == nil && had != w {
			return taken(w.ID)
		}
		return err
	})
	return w, err
}

// creating begins to make something: it checks the parameters and chooses an id.
func (s *Store) creating(invalid error, id *string, chosen string) (err error) {
	if invalid != nil {
		return invalid
	}
	if *id, err = s.newID(chosen); err != nil {
		return fmt.Errorf("making an id: %w", err)
	}
	return nil
}

// Workspaces implements [tree.Store].
func (s *Store) Workspaces(ctx context.Context) ([]tree.Workspace, error) {
	list := []tree.Workspace{}
	err := s.read(ctx, "listing workspaces", func(tx txn) error {
		const query = "SELECT id, name FROM tree_workspaces WHERE deleted_at IS NULL ORDER BY id"
		return each(ctx, tx, query, nil, &list, func(rows *sql.Rows, w *tree.Workspace) error { return rows.Scan(&w.ID, &w.Name) })
	})
	return list, err
}

// RenameWorkspace implements [tree.Store].
func (s *Store) RenameWorkspace(ctx context.Context, p tree.RenameWorkspace) (w tree.Workspace, err error) {
	if err := p.Check(); err != nil {
		return w, err
	}
	err = s.change(ctx, "renaming a workspace", func(ctx context.Context, tx txn) (err error) {
		if w, err = s.own(ctx, tx, p.WorkspaceID, s.phrase.own); err != nil || w.Name == p.Name {
			return err
		}
		w.Name = p.Name
		if _, err := tx.exec(ctx, "UPDATE tree_workspaces SET name = $2 WHERE id = $1", w.ID, w.Name); err != nil {
			return err
		}
		return s.logWorkspace(ctx, tx, tree.Renamed, w, p.Actor)
	})
	return w, err
}

func (s *Store) logWorkspace(ctx context.Context, tx txn, action tree.Action, w tree.Workspace, actor string) error {
	d, err := s.deed(ctx, tx, w.ID, actor)
	if err != nil {
		return err
	}
	return s.logItem(ctx, tx, d, ofWorkspace, action, w.ID, "", w.Name)
}

// DeleteWorkspace implements [tree.Store]. Who is in the middle of changing
// something in the workspace shares its row, and is waited for.
func (s *Store) DeleteWorkspace(ctx context.Context, p tree.DeleteWorkspace) (w tree.Workspace, err error) {
	if err := p.Check(); err != nil {
		return w, err
	}
	err = s.change(ctx, "deleting a workspace", func(ctx context.Context, tx txn) (err error) {
		if w, err = s.own(ctx, tx, p.WorkspaceID, s.phrase.seize); err != nil {
			return err
		}
		if !p.Recursive {
			if err := s.wantEmpty(ctx, tx, "workspace", tree.Scope{WorkspaceID: w.ID}, w.ID); err != nil {
				return err
			}
		}
		_, err = tx.exec(ctx, "UPDATE tree_workspaces SET deleted_at = $2 WHERE id = $1", w.ID, s.now().UnixNano())
		if err != nil {
			return err
		}
		return s.logWorkspace(ctx, tx, tree.Deleted, w, p.Actor)
	})
	return w, err
}

// wantEmpty refuses to delete a place that has something in it.
func (s *Store) wantEmpty(ctx context.Context, tx txn, what string, scope tree.Scope, id string) error {
	in, args := inScope("folder_id", scope)
	below, _ := inScope("parent_id", scope)
	query := `SELECT 1 WHERE EXISTS (SELECT 1 FROM tree_folders WHERE ` + below + ` AND deleted_at IS NULL)
		OR EXISTS (SELECT 1 FROM tree_threads WHERE ` + in + ` AND deleted_at IS NULL)
		OR EXISTS (SELECT 1 FROM thread_agents_doc WHERE ` + in + ` AND status <> 'archived')`
	var one int
	full, err := tx.one(ctx, query, args, []any{&one})
	if err != nil || !full {
		return err
	}
	return tree.Errorf(tree.CodeInvalid, "%s %q: it is not empty; delete it with recursive", what, id)
}

// inScope is a condition for the rows of a scope, whose place is in a column, with
// its arguments from $1 on. Null equals nothing, so the root needs its own words.
func inScope(column string, scope tree.Scope) (string, []any) {
	if scope.FolderID == "" {
		return "workspace_id = $1 AND " + column + " IS NULL", []any{scope.WorkspaceID}
	}
	return "workspace_id = $1 AND " + column + " = $2", []any{scope.WorkspaceID, string(scope.FolderID)}
}
