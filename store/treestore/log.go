package treestore

import (
	"context"
	"database/sql"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// kind says what a row of the log is about.
type kind string

const (
	ofWorkspace kind = "workspace"
	ofFolder    kind = "folder"
	ofThread    kind = "thread"
	ofDoc       kind = "doc"
)

// logColumns are those of tree_changes, but for the id.
const logColumns = "seq, workspace_id, kind, action, actor, at, item_id, parent_id, name, status, content_sha256, version, chars"

// deed is a transaction's part of what it writes into the log.
type deed struct {
	workspace, actor string
	at               time.Time
	// seq is the transaction's number where it has to be known beforehand.
	seq any
}

// deed begins a transaction's writing into the log.
func (s *Store) deed(ctx context.Context, tx txn, workspace, actor string) (deed, error) {
	d := deed{workspace: workspace, actor: actor, at: s.now()}
	if s.phrase.nextSeq == "" {
		return d, nil
	}
	var seq int64
	_, err := tx.one(ctx, s.phrase.nextSeq, nil, []any{&seq})
	d.seq = seq
	return d, err
}

// seqOf is the number of the transaction, given an argument with the deed's.
func (s *Store) seqOf(argument string) string { return s.phrase.seq[0] + argument + s.phrase.seq[1] }

// insertChange writes one row into the log.
func (s *Store) insertChange() string {
	return "INSERT INTO tree_changes (" + logColumns + ") VALUES (" + s.seqOf("$1") +
		", $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)" + s.phrase.notify
}

// logItem logs a change of a workspace, folder or thread.
func (s *Store) logItem(ctx context.Context, tx txn, d deed, k kind, action tree.Action, id string, parent tree.FolderID, name string) error {
	_, err := tx.exec(ctx, s.insertChange(), d.seq, d.workspace, string(k), string(action), d.actor, d.at.UnixNano(),
		id, nullable(parent), name, nil, nil, nil, nil)
	return err
}

// logDoc logs a change of a document.
func (s *Store) logDoc(ctx context.Context, tx txn, d deed, action tree.Action, doc *tree.Doc) error {
	_, err := tx.exec(ctx, s.insertChange(), d.seq, d.workspace, string(ofDoc), string(action), d.actor, d.at.UnixNano(),
		doc.ID, nullable(doc.FolderID), nil, string(doc.Status), doc.ContentSHA256, doc.Version, tree.Chars(doc.Content))
	return err
}

// scanChange reads a row of the log. Rows of kinds that are not known are a newer
// program's; they come without content.
func scanChange(rows *sql.Rows) (tree.Change, error) {
	var c tree.Change
	var k, id string
	var parent, name, status, sum sql.NullString
	var at int64
	var version, chars sql.NullInt64
	err := rows.Scan(&c.Seq, &c.WorkspaceID, &k, &c.Action, &c.Actor, &at, &id, &parent, &name, &status, &sum, &version, &chars)
	c.At = fromNanos(at)
	place := tree.FolderID(parent.String)
	switch kind(k) {
	case ofWorkspace:
		c.Workspace = &tree.Workspace{ID: id, Name: name.String}
	case ofFolder:
		c.Folder = &tree.Folder{ID: id, ParentID: place, Name: name.String}
	case ofThread:
		c.Thread = &tree.Thread{ID: id, FolderID: place, Title: name.String}
	case ofDoc:
		c.Doc = &tree.Summary{
			ID: id, FolderID: place, Status: tree.Status(status.String), ContentSHA256: sum.String,
			Version: version.Int64, Chars: int(chars.Int64), UpdatedAt: c.At,
		}
	}
	return c, err
}
