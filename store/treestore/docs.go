package treestore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/grapnelhq/grapnel/tree"
)

// headColumns are a document without its text, docColumns all of it. The content
// stands last in its row, and may be long.
const (
	headColumns = "d.id, d.workspace_id, d.folder_id, d.status, d.title, d.content_sha256, d.version, d.created_at, d.updated_at, d.created_by, d.updated_by"
	docColumns  = headColumns + ", d.content"
)

// revisionColumns are those of thread_agents_doc_revision.
const revisionColumns = "doc_id, version, content_sha256, chars, saved_at, saved_by, save_reason, content"

// head is where a document without its text is scanned to.
type head struct {
	doc              tree.Doc
	folder           sql.NullString
	created, updated int64
}

// into are the destinations of headColumns.
func (h *head) into() []any {
	d := &h.doc
	return []any{&d.ID, &d.WorkspaceID, &h.folder, &d.Status, &d.Title, &d.ContentSHA256, &d.Version, &h.created, &h.updated, &d.CreatedBy, &d.UpdatedBy}
}

// read returns the document that was scanned.
func (h *head) read() *tree.Doc {
	h.doc.FolderID = tree.FolderID(h.folder.String)
	h.doc.CreatedAt, h.doc.UpdatedAt = fromNanos(h.created), fromNanos(h.updated)
	return &h.doc
}

// liveHead is a query for a scope's live document, without its text.
func liveHead(scope tree.Scope) (string, []any) { return live(scope, headColumns) }

// live is a query for columns of a scope's live document. It repeats what its index
// is about.
func live(scope tree.Scope, columns string) (string, []any) {
	in, args := inScope("d.folder_id", scope)
	if scope.FolderID != "" {
		in += " AND d.folder_id IS NOT NULL"
	}
	return "SELECT " + columns + " FROM thread_agents_doc d WHERE " + in + " AND d.status <> 'archived'", args
}

// lockLive returns a scope's live document without its text, which nobody else
// changes until the transaction ends; nil for none.
func (s *Store) lockLive(ctx context.Context, tx txn, scope tree.Scope) (*tree.Doc, error) {
	query, args := liveHead(scope)
	var h head
	ok, err := tx.one(ctx, query+s.phrase.own, args, h.into())
	if err != nil || !ok {
		return nil, err
	}
	return h.read(), nil
}

// The statements that write a document and its revisions.
const (
	insertDoc = `INSERT INTO thread_agents_doc
		(id, workspace_id, folder_id, status, title, content_sha256, version, chars, created_at, updated_at, created_by, updated_by, content)
		VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $8, $9, $9, $10) ON CONFLICT DO NOTHING`
	updateText = `UPDATE thread_agents_doc SET content_sha256 = $2, version = $3, chars = $4, updated_at = $5, updated_by = $6, content = $7
		WHERE id = $1`
	updateStatus = `UPDATE thread_agents_doc SET status = $2, archived_at = NULL, archived_seq = NULL WHERE id = $1`

	insertRevision = "INSERT INTO thread_agents_doc_revision (" + revisionColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
)

// savingTexts are the statements that saving a document takes.
func (s *Store) savingTexts() []string {
	root, _ := liveHead(tree.Scope{})
	folder, _ := liveHead(tree.Scope{FolderID: "f"})
	return []string{
		workspaceIsThere, folderIsThere + s.phrase.share, root + s.phrase.own, folder + s.phrase.own,
		insertDoc, updateText, updateStatus, insertRevision, s.phrase.nextSeq, s.insertChange(),
	}
}

// Save implements [tree.Store].
func (s *Store) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	if err := p.Check(); err != nil {
		return tree.Saved{}, err
	}
	content, err := tree.Normalize(p.Content)
	if err != nil {
		return tree.Saved{}, err
	}
	id, err := s.newID("") // for a new document
	if err != nil {
		return tree.Saved{}, fmt.Errorf("making an id: %w", err)
	}
	text := tree.Doc{Content: content, ContentSHA256: tree.Sum(content), Status: tree.StatusOf(content), UpdatedBy: p.Actor}
	var saved tree.Saved
	err = s.change(ctx, "saving a document", func(ctx context.Context, tx txn) error {
		if err := s.enter(ctx, tx, p.Scope, ofDoc, string(p.FolderID)); err != nil {
			return err
		}
		for {
			had, err := s.lockLive(ctx, tx, p.Scope)
			if err != nil {
				return err
			}
			if err := judge(p, had); err != nil {
				return err
			}
			done, err := s.saveOn(ctx, tx, p, id, had, text, &saved)
			if done || err != nil {
				return err
			}
			// Somebody else made a document in between: now it is seen, and locked.
		}
	})
	return saved, err
}

// judge refuses to save on another document than the one that was expected.
func judge(p tree.Save, live *tree.Doc) error {
	expected := int64(0)
	if p.ExpectedVersion != nil {
		expected = *p.ExpectedVersion
	}
	if expected != versionOf(live) || p.ExpectedDocID != "" && p.ExpectedDocID != idOf(live) {
		return tree.ConflictWith(p.ExpectedVersion, live)
	}
	return nil
}

// versionOf is the version of a live document, 0 for none.
func versionOf(d *tree.Doc) int64 {
	if d == nil {
		return 0
	}
	return d.Version
}

// idOf is the id of a live document, "" for none.
func idOf(d *tree.Doc) string {
	if d == nil {
		return ""
	}
	return d.ID
}

// saveOn saves a text on the live document, or makes one if there is none. It
// reports false where somebody else was faster.
func (s *Store) saveOn(ctx context.Context, tx txn, p tree.Save, id string, had *tree.Doc, text tree.Doc, saved *tree.Saved) (bool, error) {
	if had != nil && had.ContentSHA256 == text.ContentSHA256 {
		had.Content = text.Content
		*saved = tree.Saved{Doc: *had, Unchanged: true}
		return true, nil
	}
	d, err := s.deed(ctx, tx, p.WorkspaceID, p.Actor)
	if err != nil {
		return false, err
	}
	doc := had
	reason := cmp.Or(p.SaveReason, tree.Manual)
	if had == nil {
		doc = &tree.Doc{ID: id, WorkspaceID: p.WorkspaceID, FolderID: p.FolderID, Title: tree.Title, CreatedBy: p.Actor, CreatedAt: d.at}
		ok, err := s.insert(ctx, tx, doc, text, d)
		if !ok || err != nil {
			return false, err
		}
		err = s.putRevision(ctx, tx, doc, reason)
		if err != nil {
			return false, err
		}
	} else if err := s.putVersion(ctx, tx, doc, text, reason, d); err != nil {
		return false, err
	}
	*saved = tree.Saved{Doc: *doc}
	return true, s.logDoc(ctx, tx, d, tree.DocSaved, doc)
}

// insert makes a document at version 1. It reports false where its scope has one by
// now.
func (s *Store) insert(ctx context.Context, tx txn, doc *tree.Doc, text tree.Doc, d deed) (bool, error) {
	doc.Content, doc.ContentSHA256, doc.Status, doc.Version = text.Content, text.ContentSHA256, text.Status, 1
	doc.UpdatedAt, doc.UpdatedBy = d.at, d.actor
	n, err := tx.exec(ctx, insertDoc, doc.ID, doc.WorkspaceID, nullable(doc.FolderID), string(doc.Status), doc.Title,
		doc.ContentSHA256, tree.Chars(doc.Content), d.at.UnixNano(), d.actor, doc.Content)
	if n != 1 || err != nil {
		return false, err
	}
	return true, markFolder(ctx, tx, doc)
}

// putVersion makes the next version of a document, and its revision.
func (s *Store) putVersion(ctx context.Context, tx txn, doc *tree.Doc, text tree.Doc, reason tree.SaveReason, d deed) error {
	was := doc.Status
	doc.Content, doc.ContentSHA256, doc.Status = text.Content, text.ContentSHA256, text.Status
	doc.Version++
	doc.UpdatedAt, doc.UpdatedBy = d.at, d.actor
	_, err := tx.exec(ctx, updateText, doc.ID, doc.ContentSHA256, doc.Version, tree.Chars(doc.Content), d.at.UnixNano(), d.actor, doc.Content)
	if err != nil {
		return err
	}
	if was != doc.Status {
		if err := s.putStatus(ctx, tx, doc, d); err != nil {
			return err
		}
		if err := markFolder(ctx, tx, doc); err != nil {
			return err
		}
	}
	return s.putRevision(ctx, tx, doc, reason)
}

// putStatus keeps a document's new status. It is apart from the rest, because it
// changes indexes, which most versions do not.
func (s *Store) putStatus(ctx context.Context, tx txn, doc *tree.Doc, d deed) error {
	if doc.Status != tree.Archived {
		_, err := tx.exec(ctx, updateStatus, doc.ID, string(doc.Status))
		return err
	}
	const archive = "UPDATE thread_agents_doc SET status = 'archived', archived_at = $2, archived_seq = "
	_, err := tx.exec(ctx, archive+s.seqOf("$3")+" WHERE id = $1", doc.ID, d.at.UnixNano(), d.seq)
	return err
}

// markFolder notes at a document's folder whether the document is active.
func markFolder(ctx context.Context, tx txn, doc *tree.Doc) error {
	if doc.FolderID == "" {
		return nil
	}
	const mark = "UPDATE tree_folders SET has_doc = $3 WHERE workspace_id = $1 AND id = $2"
	_, err := tx.exec(ctx, mark, doc.WorkspaceID, string(doc.FolderID), doc.Status == tree.Active)
	return err
}

// putRevision keeps a document's newest version.
func (s *Store) putRevision(ctx context.Context, tx txn, doc *tree.Doc, reason tree.SaveReason) error {
	_, err := tx.exec(ctx, insertRevision, doc.ID, doc.Version, doc.ContentSHA256, tree.Chars(doc.Content),
		doc.UpdatedAt.UnixNano(), doc.UpdatedBy, string(reason), doc.Content)
	return err
}
