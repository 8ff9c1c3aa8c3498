package treestore

import (
	"context"

	"github.com/grapnelhq/grapnel/tree"
)

// DeleteFolder implements [tree.Store]. It keeps what lies below from changing:
// saves share their folder's row, so the folders' rows are seized first.
func (s *Store) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (f tree.Folder, err error) {
	if err := p.Check(); err != nil {
		return f, err
	}
	err = s.change(ctx, "deleting a folder", func(ctx context.Context, tx txn) (err error) {
		if f, err = s.owned(ctx, tx, p.WorkspaceID, p.FolderID); err != nil {
			return err
		}
		scope := tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: tree.FolderID(f.ID)}
		if _, err := s.height(ctx, tx, scope); err != nil { // a damaged tree is not followed
			return err
		}
		if s.phrase.seize != "" {
			if err := s.seize(ctx, tx, scope); err != nil {
				return err
			}
		}
		if !p.Recursive {
			if err := s.wantEmpty(ctx, tx, "folder", scope, f.ID); err != nil {
				return err
			}
		}
		d, err := s.deed(ctx, tx, p.WorkspaceID, p.Actor)
		if err != nil {
			return err
		}
		return s.deleteBelow(ctx, tx, scope, f.ParentID, d)
	})
	return f, err
}

// gone is the beginning of a statement about what is deleted with a folder: table
// gone(id) has the folder and those below it, table moving(id) the threads in them.
func gone(scope tree.Scope) string {
	with, _ := below(scope)
	return with + `, gone(id) AS (SELECT id FROM below UNION SELECT $2), moving(id) AS (SELECT t.id FROM gone
		CROSS JOIN tree_threads t WHERE t.workspace_id = $1 AND t.folder_id = gone.id AND t.deleted_at IS NULL) `
}

// seize locks folders that are to be deleted, and the threads in them.
func (s *Store) seize(ctx context.Context, tx txn, scope tree.Scope) error {
	for _, rows := range []string{
		"tree_folders WHERE workspace_id = $1 AND id IN (SELECT id FROM gone) ORDER BY id",
		"tree_threads WHERE workspace_id = $1 AND id IN (SELECT id FROM moving) ORDER BY id",
	} {
		_, err := tx.exec(ctx, gone(scope)+"SELECT id FROM "+rows+s.phrase.seize, scope.WorkspaceID, string(scope.FolderID))
		if err != nil {
			return err
		}
	}
	return nil
}

// The rows that go, or move, with a folder.
const (
	goneDocs    = " FROM thread_agents_doc WHERE " + ofGoneDocs
	ofGoneDocs  = "workspace_id = $1 AND folder_id IN (SELECT id FROM gone) AND folder_id IS NOT NULL AND status <> 'archived'"
	goneThreads = "workspace_id = $1 AND id IN (SELECT id FROM moving)"
	noDoc       = "NULL, CAST(NULL AS TEXT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)" // in the columns of documents
	goneFolders = "workspace_id = $1 AND id IN (SELECT id FROM gone) AND deleted_at IS NULL"
)

// deleteBelow deletes a folder and those below it: their documents are archived and
// their threads move to the parent. What is logged, or kept as a revision, is taken
// from the rows before they change.
func (s *Store) deleteBelow(ctx context.Context, tx txn, scope tree.Scope, parent tree.FolderID, d deed) error {
	at := d.at.UnixNano()
	log := "INSERT INTO tree_changes (" + logColumns + ") SELECT " + s.seqOf("$3") + ", workspace_id, CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS BIGINT), id, "
	logged := func(k kind, action tree.Action, more ...any) []any {
		return append([]any{d.seq, string(k), string(action), d.actor, at}, more...)
	}
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{log + "folder_id, NULL, 'archived', content_sha256, version + 1, chars" + goneDocs + s.phrase.notify, logged(ofDoc, tree.DocArchived)},
		{"INSERT INTO thread_agents_doc_revision (" + revisionColumns + ") SELECT id, version + 1, content_sha256, chars, $3, $4, 'archive', content" +
			goneDocs, []any{at, d.actor}},
		{"UPDATE thread_agents_doc SET status = 'archived', version = version + 1, updated_at = $3, archived_at = $3, updated_by = $4, archived_seq = " +
			s.seqOf("$5") + " WHERE " + ofGoneDocs, []any{at, d.actor, d.seq}},
		{
			log + "CAST($8 AS TEXT), title, " + noDoc + " FROM tree_threads WHERE " + goneThreads + s.phrase.notify,
			logged(ofThread, tree.Moved, nullable(parent)),
		},
		{"UPDATE tree_threads SET folder_id = $3 WHERE " + goneThreads, []any{nullable(parent)}},
		{log + "parent_id, name, " + noDoc + " FROM tree_folders WHERE " + goneFolders + s.phrase.notify, logged(ofFolder, tree.Deleted)},
		{"UPDATE tree_folders SET deleted_at = $3, has_doc = FALSE WHERE " + goneFolders, []any{at}},
	} {
		args := append([]any{scope.WorkspaceID, string(scope.FolderID)}, step.args...)
		if _, err := tx.exec(ctx, gone(scope)+step.statement, args...); err != nil {
			return err
		}
	}
	return nil
}
