package treestore

import (
	"context"
	"database/sql"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

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

// workspace returns an existing workspace; mode says how its row is locked.
func (s *Store) workspace(ctx context.Context, tx txn, id, mode string) (tree.Workspace, error) {
	w := tree.Workspace{ID: id}
	ok, err := tx.one(ctx, workspaceIsThere+mode, []any{id}, []any{&w.Name})
	if err == nil && !ok {
		err = noWorkspace(id)
	}
	return w, err
}

// hold checks that a place exists; mode says how its folder's row is locked.
func (s *Store) hold(ctx context.Context, tx txn, scope tree.Scope, mode string) error {
	if scope.FolderID == "" {
		_, err := s.workspace(ctx, tx, scope.WorkspaceID, "") // DeleteWorkspace waits for all others
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

// own waits for all others who change a workspace and locks its row by mode.
func (s *Store) own(ctx context.Context, tx txn, id, mode string) (tree.Workspace, error) {
	if s.phrase.queue != "" {
		if _, err := tx.exec(ctx, s.phrase.queue, "tree "+id); err != nil {
			return tree.Workspace{}, err
		}
	}
	return s.workspace(ctx, tx, id, mode)
}

// enter checks that a place exists and stays, and waits for others who change folders or the same item.
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
	id, err := s.newID(p.ID)
	if err != nil {
		return tree.Workspace{}, err
	}
	w := tree.Workspace{ID: id, Name: p.Name}
	err = s.change(ctx, "creating a workspace", p, func(ctx context.Context, tx txn) error {
		n, err := tx.exec(ctx, `INSERT INTO tree_workspaces (id, name, created_at, created_by) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`, w.ID, w.Name, s.now().UnixNano(), p.Actor)
		if err != nil {
			return err
		}
		if n == 1 {
			return s.logItem(ctx, tx, w.ID, p.Actor, ofWorkspace, tree.Created, w.ID, "", w.Name)
		}
		had, err := s.workspace(ctx, tx, w.ID, "")
		if tree.HasCode(err, tree.CodeNotFound) || err == nil && had != w {
			return taken(w.ID)
		}
		return err
	})
	return w, err
}

// Workspaces implements [tree.Store].
func (s *Store) Workspaces(ctx context.Context) ([]tree.Workspace, error) {
	const query = "SELECT id, name FROM tree_workspaces WHERE deleted_at IS NULL ORDER BY id"
	list, err := sqldb.ReadList(ctx, s.db, "listing workspaces", query, nil, func(rows *sql.Rows, w *tree.Workspace) error { return rows.Scan(&w.ID, &w.Name) })
	return list, outcome(err)
}

// RenameWorkspace implements [tree.Store].
func (s *Store) RenameWorkspace(ctx context.Context, p tree.RenameWorkspace) (w tree.Workspace, err error) {
	err = s.change(ctx, "renaming a workspace", p, func(ctx context.Context, tx txn) (err error) {
		if w, err = s.own(ctx, tx, p.WorkspaceID, s.phrase.own); err != nil || w.Name == p.Name {
			return err
		}
		w.Name = p.Name
		if _, err := tx.exec(ctx, "UPDATE tree_workspaces SET name = $2 WHERE id = $1", w.ID, w.Name); err != nil {
			return err
		}
		return s.logItem(ctx, tx, w.ID, p.Actor, ofWorkspace, tree.Renamed, w.ID, "", w.Name)
	})
	return w, err
}

// DeleteWorkspace implements [tree.Store]. Whoever changes something in the workspace shares
// its row, and is waited for.
func (s *Store) DeleteWorkspace(ctx context.Context, p tree.DeleteWorkspace) (w tree.Workspace, err error) {
	err = s.change(ctx, "deleting a workspace", p, func(ctx context.Context, tx txn) (err error) {
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
		if _, err := tx.exec(ctx, forgetConversations, w.ID); err != nil {
			return err
		}
		return s.logItem(ctx, tx, w.ID, p.Actor, ofWorkspace, tree.Deleted, w.ID, "", w.Name)
	})
	return w, err
}

// forgetConversations lets nobody read the conversations of a workspace any more. [store.Store.SweepConversations] removes
// them in pieces.
const forgetConversations = "UPDATE conversations SET gone = 1 WHERE workspace_id = $1 AND gone = 0"

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

// inScope is a condition for the rows of a scope, with its arguments from $1 on. Null equals
// nothing, so the root has its own.
func inScope(column string, scope tree.Scope) (string, []any) {
	if scope.FolderID == "" {
		return "workspace_id = $1 AND " + column + " IS NULL", []any{scope.WorkspaceID}
	}
	return "workspace_id = $1 AND " + column + " = $2", []any{scope.WorkspaceID, string(scope.FolderID)}
}

func (s *Store) thread(ctx context.Context, tx txn, workspace, id, mode string) (tree.Thread, error) {
	t := tree.Thread{ID: id}
	const query = "SELECT folder_id, title FROM tree_threads WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL"
	ok, err := tx.one(ctx, query+mode, []any{workspace, id}, []any{sqldb.OrZero(&t.FolderID), &t.Title})
	if err == nil && !ok {
		err = notFound("thread", id)
	}
	return t, err
}

// CreateThread implements [tree.Store].
func (s *Store) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	id, err := s.newID(p.ID)
	if err != nil {
		return tree.Thread{}, err
	}
	t := tree.Thread{ID: id, FolderID: p.FolderID, Title: p.Title}
	err = s.change(ctx, "creating a thread", p, func(ctx context.Context, tx txn) error {
		if err := s.enter(ctx, tx, tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: p.FolderID}, ofThread, t.ID); err != nil {
			return err
		}
		n, err := tx.exec(ctx, `INSERT INTO tree_threads (workspace_id, id, folder_id, title, created_at, created_by)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			p.WorkspaceID, t.ID, nullable(t.FolderID), t.Title, s.now().UnixNano(), p.Actor)
		if err != nil {
			return err
		}
		if n == 1 {
			return s.logItem(ctx, tx, p.WorkspaceID, p.Actor, ofThread, tree.Created, t.ID, t.FolderID, t.Title)
		}
		had, err := s.thread(ctx, tx, p.WorkspaceID, t.ID, "")
		if tree.HasCode(err, tree.CodeNotFound) || err == nil && had != t {
			return taken(t.ID)
		}
		return err
	})
	return t, err
}

// changeThread updates or deletes a thread if its new place exists.
func (s *Store) changeThread(ctx context.Context, params any, place tree.Scope, id, actor string, action tree.Action, update func(t *tree.Thread)) (t tree.Thread, err error) {
	err = s.change(ctx, "changing a thread", params, func(ctx context.Context, tx txn) (err error) {
		if err := s.enter(ctx, tx, place, ofThread, id); err != nil {
			return err
		}
		if t, err = s.thread(ctx, tx, place.WorkspaceID, id, s.phrase.own); err != nil {
			return err
		}
		was := t
		update(&t)
		var deleted any
		if action == tree.Deleted {
			deleted = s.now().UnixNano()
		} else if t == was {
			return nil
		}
		const query = "UPDATE tree_threads SET folder_id = $3, title = $4, deleted_at = $5 WHERE workspace_id = $1 AND id = $2"
		if _, err := tx.exec(ctx, query, place.WorkspaceID, t.ID, nullable(t.FolderID), t.Title, deleted); err != nil {
			return err
		}
		if action == tree.Deleted {
			if _, err := tx.exec(ctx, forgetConversations+" AND thread_id = $2", place.WorkspaceID, t.ID); err != nil {
				return err
			}
		}
		return s.logItem(ctx, tx, place.WorkspaceID, actor, ofThread, action, t.ID, t.FolderID, t.Title)
	})
	return t, err
}

// RenameThread implements [tree.Store].
func (s *Store) RenameThread(ctx context.Context, p tree.RenameThread) (tree.Thread, error) {
	return s.changeThread(ctx, p, tree.Scope{WorkspaceID: p.WorkspaceID}, p.ThreadID, p.Actor, tree.Renamed, func(t *tree.Thread) { t.Title = p.Title })
}

// MoveThread implements [tree.Store].
func (s *Store) MoveThread(ctx context.Context, p tree.MoveThread) (tree.Thread, error) {
	place := tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: p.FolderID}
	return s.changeThread(ctx, p, place, p.ThreadID, p.Actor, tree.Moved, func(t *tree.Thread) { t.FolderID = p.FolderID })
}

// DeleteThread implements [tree.Store].
func (s *Store) DeleteThread(ctx context.Context, p tree.DeleteThread) (tree.Thread, error) {
	return s.changeThread(ctx, p, tree.Scope{WorkspaceID: p.WorkspaceID}, p.ThreadID, p.Actor, tree.Deleted, func(*tree.Thread) {})
}
