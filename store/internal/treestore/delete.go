package treestore

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// Bounds of one transaction of DeleteFolder, in folders and threads. A document, whose text is
// copied, counts once more for each charsPerRow.
const (
	deletePiece = 256
	charsPerRow = 4096
)

// DeleteFolder implements [tree.Store]. A large folder goes in several short transactions. The deepest folders go
// first, so that every thread is always in an existing folder and resolves to the document of before or after.
func (s *Store) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (f tree.Folder, err error) {
	err = s.db.Pieces(ctx, func() (more bool, err error) {
		err = s.change(ctx, "deleting a folder", p, func(ctx context.Context, tx txn) (err error) {
			f, more, err = s.deleteSome(ctx, tx, p)
			return err
		})
		return more, err
	})
	return f, outcome(err)
}

// deleteSome deletes a piece of a folder and reports whether more is left. It seizes the
// folders' rows first, because saves share them.
func (s *Store) deleteSome(ctx context.Context, tx txn, p tree.DeleteFolder) (f tree.Folder, more bool, err error) {
	if f, err = s.owned(ctx, tx, p.WorkspaceID, p.FolderID); err != nil {
		return f, false, err
	}
	piece, all := piece{workspace: p.WorkspaceID, folders: []string{f.ID}, threads: []string{}, left: deletePiece}, true
	if p.Recursive {
		piece.folders = []string{}
		if all, err = piece.collect(ctx, tx, f.ID, 1); err != nil {
			return f, false, err
		}
	}
	if err := s.seize(ctx, tx, &piece); err != nil {
		return f, false, err
	}
	if !p.Recursive {
		scope := tree.Scope{WorkspaceID: p.WorkspaceID, FolderID: tree.FolderID(f.ID)}
		if err := s.wantEmpty(ctx, tx, "folder", scope, f.ID); err != nil {
			return f, false, err
		}
	}
	d, err := s.beginEntry(ctx, tx, p.WorkspaceID, p.Actor)
	if err != nil {
		return f, false, err
	}
	return f, !all, s.deletePiece(ctx, tx, &piece, f.ParentID, d)
}

// piece is what one transaction deletes: folders, each after all below it, and the threads that move out of them.
type piece struct {
	workspace        string
	folders, threads []string
	left             int
}

// collect adds a folder after all that is in it, and reports false if the piece is full.
func (p *piece) collect(ctx context.Context, tx txn, folder string, depth int) (all bool, err error) {
	if depth >= damagedDepth {
		return false, damaged(p.workspace)
	}
	if p.left <= 0 {
		return false, nil
	}
	children, err := p.ids(ctx, tx, "tree_folders WHERE workspace_id = $1 AND parent_id = $2", folder)
	for _, child := range children {
		if all, err := p.collect(ctx, tx, child, depth+1); !all || err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	threads, err := p.ids(ctx, tx, "tree_threads WHERE workspace_id = $1 AND folder_id = $2", folder)
	if err != nil {
		return false, err
	}
	fit := min(len(threads), p.left)
	p.threads, p.left = append(p.threads, threads[:fit]...), p.left-fit
	if fit < len(threads) {
		return false, nil
	}
	var chars int
	const doc = "SELECT chars FROM thread_agents_doc WHERE workspace_id = $1 AND folder_id = $2 AND folder_id IS NOT NULL AND status <> 'archived'"
	if _, err := tx.one(ctx, doc, []any{p.workspace, folder}, []any{&chars}); err != nil {
		return false, err
	}
	cost := 1 + chars/charsPerRow
	if cost > p.left && len(p.folders)+len(p.threads) > 0 {
		return false, nil
	}
	p.folders, p.left = append(p.folders, folder), p.left-cost
	return true, nil
}

func (p *piece) ids(ctx context.Context, tx txn, from, folder string) ([]string, error) {
	query := "SELECT id FROM " + from + " AND deleted_at IS NULL LIMIT $3"
	return sqldb.List(ctx, tx.Tx, query, []any{p.workspace, folder, p.left + 1}, func(rows *sql.Rows, id *string) error { return rows.Scan(id) })
}

func (p *piece) args(more ...any) []any {
	folders, _ := json.Marshal(p.folders) //nolint:errchkjson // strings always encode
	threads, _ := json.Marshal(p.threads) //nolint:errchkjson // likewise
	return append([]any{p.workspace, string(folders), string(threads)}, more...)
}

// gone begins a statement about a piece: table gone(id) has its folders, moving(id) its threads.
func (s *Store) gone() string {
	return "WITH gone(id) AS (SELECT value FROM " + s.phrase.list[0] + "$2" + s.phrase.list[1] +
		"), moving(id) AS (SELECT value FROM " + s.phrase.list[0] + "$3" + s.phrase.list[1] + ") "
}

func (s *Store) seize(ctx context.Context, tx txn, p *piece) error {
	if s.phrase.seize == "" {
		return nil
	}
	for _, rows := range []string{
		"tree_folders WHERE workspace_id = $1 AND id IN (SELECT id FROM gone) ORDER BY id",
		"tree_threads WHERE workspace_id = $1 AND id IN (SELECT id FROM moving) ORDER BY id",
	} {
		if _, err := tx.exec(ctx, s.gone()+"SELECT id FROM "+rows+s.phrase.seize, p.args()...); err != nil {
			return err
		}
	}
	return nil
}

// The rows of a folder, for the log and for revisions.
const (
	goneDocs    = " FROM thread_agents_doc WHERE " + ofGoneDocs
	ofGoneDocs  = "workspace_id = $1 AND folder_id IN (SELECT id FROM gone) AND folder_id IS NOT NULL AND status <> 'archived'"
	goneThreads = "workspace_id = $1 AND id IN (SELECT id FROM moving)"
	noDoc       = "NULL, CAST(NULL AS TEXT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)" // the columns of documents
	goneFolders = "workspace_id = $1 AND id IN (SELECT id FROM gone)"
)

// deletePiece archives the folders' documents, moves their threads to parent, and deletes them.
// Log and revisions are written from the rows before they change.
func (s *Store) deletePiece(ctx context.Context, tx txn, p *piece, parent tree.FolderID, d logEntry) error {
	at := d.at.UnixNano()
	log := "INSERT INTO tree_changes (" + logColumns + ") SELECT " + s.seqOf("$4") + ", workspace_id, CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT), CAST($8 AS BIGINT), id, "
	logged := func(k kind, action tree.Action, more ...any) []any {
		return append([]any{d.seq, string(k), string(action), d.actor, at}, more...)
	}
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{log + "folder_id, NULL, 'archived', content_sha256, version + 1, chars" + goneDocs + s.phrase.notify, logged(ofDoc, tree.DocArchived)},
		{"INSERT INTO thread_agents_doc_revision (" + revisionColumns + ") SELECT id, version + 1, content_sha256, chars, $4, $5, 'archive', content" +
			goneDocs, []any{at, d.actor}},
		{"UPDATE thread_agents_doc SET status = 'archived', version = version + 1, updated_at = $4, archived_at = $4, updated_by = $5, archived_seq = " +
			s.seqOf("$6") + " WHERE " + ofGoneDocs, []any{at, d.actor, d.seq}},
		{
			log + "CAST($9 AS TEXT), title, " + noDoc + " FROM tree_threads WHERE " + goneThreads + s.phrase.notify,
			logged(ofThread, tree.Moved, nullable(parent)),
		},
		{"UPDATE tree_threads SET folder_id = $4 WHERE " + goneThreads, []any{nullable(parent)}},
		{log + "parent_id, name, " + noDoc + " FROM tree_folders WHERE " + goneFolders + s.phrase.notify, logged(ofFolder, tree.Deleted)},
		{"UPDATE tree_folders SET deleted_at = $4, has_doc = FALSE WHERE " + goneFolders, []any{at}},
	} {
		if _, err := tx.exec(ctx, s.gone()+step.statement, p.args(step.args...)...); err != nil {
			return err
		}
	}
	return nil
}
