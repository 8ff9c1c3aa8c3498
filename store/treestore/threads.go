package treestore

import (
	"context"
	"database/sql"

	"github.com/grapnelhq/grapnel/tree"
)

// thread returns a thread that is there; mode says how its row is locked.
func (s *Store) thread(ctx context.Context, tx txn, workspace, id, mode string) (tree.Thread, error) {
	t := tree.Thread{ID: id}
	var folder sql.NullString
	const query = "SELECT folder_id, title FROM tree_threads WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL"
	ok, err := tx.one(ctx, query+mode, []any{workspace, id}, []any{&folder, &t.Title})
	t.FolderID = tree.FolderID(folder.String)
	if err == nil && !ok {
		err = notFound("thread", id)
	}
	return t, err
}

func (s *Store) logThread(ctx context.Context, tx txn, action tree.Action, workspace string, t tree.Thread, actor string) error {
	d, err := s.deed(ctx, tx, workspace, actor)
	if err != nil {
		return err
	}
	return s.logItem(ctx, tx, d, ofThread, action, t.ID, t.FolderID, t.Title)
}

// CreateThread implements [tree.Store].
func (s *Store) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	t := tree.Thread{FolderID: p.FolderID, Title: p.Title}
	if err := s.creating(p.Check(), &t.ID, p.ID); err != nil {
		return t, err
	}
	err := s.change(ctx, "creating a thread", func(ctx context.Context, tx txn) error {
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
			return s.logThread(ctx, tx, tree.Created, p.WorkspaceID, t, p.Actor)
		}
		had, err := s.thread(ctx, tx, p.WorkspaceID, t.ID, "")
		if tree.HasCode(err, tree.CodeNotFound) || err == nil && had != t {
			return taken(t.ID)
		}
		return err
	})
	return t, err
}

// changeThread runs update for a thread, once the place where it shall be is known
// to be there. Update reports whether there is something to do; then a statement
// does it and the change is logged.
func (s *Store) changeThread(ctx context.Context, place tree.Scope, id, actor string, action tree.Action, update func(t *tree.Thread) bool) (t tree.Thread, err error) {
	err = s.change(ctx, "changing a thread", func(ctx context.Context, tx txn) (err error) {
		if err := s.enter(ctx, tx, place, ofThread, id); err != nil {
			return err
		}
		if t, err = s.thread(ctx, tx, place.WorkspaceID, id, s.phrase.own); err != nil || !update(&t) {
			return err
		}
		var deleted any
		if action == tree.Deleted {
			deleted = s.now().UnixNano()
		}
		const query = "UPDATE tree_threads SET folder_id = $3, title = $4, deleted_at = $5 WHERE workspace_id = $1 AND id = $2"
		if _, err := tx.exec(ctx, query, place.WorkspaceID, t.ID, nullable(t.FolderID), t.Title, deleted); err != nil {
			return err
		}
		return s.logThread(ctx, tx, action, place.WorkspaceID, t, actor)
	})
	return t, err
}

// RenameThread implements [tree.Store].
func (s *Store) RenameThread(ctx context.Context, p tree.RenameThread) (tree.Thread, error) {
	if err := p.Check(); err != nil {
		return tree.Thread{}, err
	}
	return s.changeThread(ctx, tree.Scope{WorkspaceID: p.WorkspaceID}, p.ThreadID, p.Actor, tree.Renamed, func(t *tree.Thread) bool {
		was := t.Title
		t.Title = p.Title
		return t.Title != was
	})
}

// MoveThread implements [tree.Store].
func (s *Store) MoveThread(ctx context.Context, p tree.MoveThread) (tree.Thread, error) {
	if err := p.Check(); err != nil {
		return tree.Thread{}, err
	}
	place := tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: p.FolderID}
	return s.changeThread(ctx, place, p.ThreadID, p.Actor, tree.Moved, func(t *tree.Thread) bool {
		was := t.FolderID
		t.FolderID = p.FolderID
		return t.FolderID != was
	})
}

// DeleteThread implements [tree.Store].
func (s *Store) DeleteThread(ctx context.Context, p tree.DeleteThread) (tree.Thread, error) {
	if err := p.Check(); err != nil {
		return tree.Thread{}, err
	}
	return s.changeThread(ctx, tree.Scope{WorkspaceID: p.WorkspaceID}, p.ThreadID, p.Actor, tree.Deleted, func(*tree.Thread) bool { return true })
}
