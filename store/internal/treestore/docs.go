package treestore

import (
	"cmp"
	"context"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// The content stands last in its row, and may be long.
const (
	headColumns = "d.id, d.workspace_id, d.folder_id, d.status, d.title, d.content_sha256, d.version, d.created_at, d.updated_at, d.created_by, d.updated_by"
	docColumns  = headColumns + ", d.content"
)

const revisionColumns = "doc_id, version, content_sha256, chars, saved_at, saved_by, save_reason, content"

// into are the destinations of headColumns; those that a LEFT JOIN leaves null stay zero.
func into(d *tree.Doc, more ...any) []any {
	return append([]any{
		sqldb.OrZero(&d.ID), sqldb.OrZero(&d.WorkspaceID), sqldb.OrZero(&d.FolderID), sqldb.OrZero(&d.Status), sqldb.OrZero(&d.Title), sqldb.OrZero(&d.ContentSHA256), sqldb.OrZero(&d.Version),
		sqldb.Nanos{To: &d.CreatedAt},
		sqldb.Nanos{To: &d.UpdatedAt},
		sqldb.OrZero(&d.CreatedBy), sqldb.OrZero(&d.UpdatedBy),
	}, more...)
}

// live queries a scope's live document. Its condition repeats that of the partial index.
func live(scope tree.Scope, columns string) (string, []any) {
	in, args := inScope("d.folder_id", scope)
	if scope.FolderID != "" {
		in += " AND d.folder_id IS NOT NULL"
	}
	return "SELECT " + columns + " FROM thread_agents_doc d WHERE " + in + " AND d.status <> 'archived'", args
}

// lockLive returns a scope's live document, if any, without its text, and locks it.
func (s *Store) lockLive(ctx context.Context, tx txn, scope tree.Scope) (*tree.Doc, error) {
	query, args := live(scope, headColumns)
	return oneDoc(ctx, tx, query+s.phrase.own, args)
}

func oneDoc(ctx context.Context, tx txn, query string, args []any) (*tree.Doc, error) {
	var d tree.Doc
	ok, err := tx.one(ctx, query, args, into(&d))
	if err != nil || !ok {
		return nil, err
	}
	return &d, nil
}

const (
	insertDoc = `INSERT INTO thread_agents_doc
		(id, workspace_id, folder_id, status, title, content_sha256, version, chars, created_at, updated_at, created_by, updated_by, content)
		VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $8, $9, $9, $10) ON CONFLICT DO NOTHING`
	updateText = `UPDATE thread_agents_doc SET content_sha256 = $2, version = $3, chars = $4, updated_at = $5, updated_by = $6, content = $7
		WHERE id = $1`
	updateStatus = `UPDATE thread_agents_doc SET status = $2, archived_at = NULL, archived_seq = NULL WHERE id = $1`

	insertRevision = "INSERT INTO thread_agents_doc_revision (" + revisionColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
)

func (s *Store) savingTexts() []string {
	root, _ := live(tree.Scope{}, headColumns)
	folder, _ := live(tree.Scope{FolderID: "f"}, headColumns)
	return []string{
		workspaceIsThere, folderIsThere + s.phrase.share, root + s.phrase.own, folder + s.phrase.own,
		insertDoc, updateText, updateStatus, insertRevision, s.phrase.nextSeq, s.insertChange(),
	}
}

// Save implements [tree.Store].
func (s *Store) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	if err := tree.Check(p); err != nil {
		return tree.Saved{}, err
	}
	content, err := tree.Normalize(p.Content)
	if err != nil {
		return tree.Saved{}, err
	}
	id, err := s.newID("") // for a new document
	if err != nil {
		return tree.Saved{}, err
	}
	text := tree.Doc{Content: content, ContentSHA256: tree.Sum(content), Status: tree.StatusOf(content), UpdatedBy: p.Actor}
	var saved tree.Saved
	err = s.change(ctx, "saving a document", nil, func(ctx context.Context, tx txn) error {
		if err := s.enter(ctx, tx, p.Scope, ofDoc, string(p.FolderID)); err != nil {
			return err
		}
		for {
			had, err := s.lockLive(ctx, tx, p.Scope)
			if err != nil {
				return err
			}
			if p.ExpectedVersion == nil && had != nil {
				return tree.ConflictWith(nil, had)
			}
			if err := expect(p.ExpectedVersion, p.ExpectedDocID, had); err != nil {
				return err
			}
			done, err := s.saveOn(ctx, tx, p, id, had, text, &saved)
			if done || err != nil {
				return err
			}
			// Somebody else has made a document: now it is visible, and locked.
		}
	})
	return saved, err
}

// expect refuses an unexpected live document. A nil version expects nothing.
func expect(version *int64, id string, live *tree.Doc) error {
	var had tree.Doc
	if live != nil {
		had = *live
	}
	if version != nil && *version != had.Version || id != "" && id != had.ID {
		return tree.ConflictWith(version, live)
	}
	return nil
}

// saveOn saves a text on the live document, or a new one. It reports false if another caller has made one.
func (s *Store) saveOn(ctx context.Context, tx txn, p tree.Save, id string, had *tree.Doc, text tree.Doc, saved *tree.Saved) (bool, error) {
	if had != nil && had.ContentSHA256 == text.ContentSHA256 {
		had.Content = text.Content
		*saved = tree.Saved{Doc: *had, Unchanged: true}
		return true, nil
	}
	d, err := s.beginEntry(ctx, tx, p.WorkspaceID, p.Actor)
	if err != nil {
		return false, err
	}
	doc, ok := had, true
	reason := cmp.Or(p.SaveReason, tree.Manual)
	if had == nil {
		doc = &tree.Doc{ID: id, WorkspaceID: p.WorkspaceID, FolderID: p.FolderID, Title: tree.Title, CreatedBy: p.Actor, CreatedAt: d.at}
		ok, err = s.insert(ctx, tx, doc, text, reason, d)
	} else {
		err = s.putVersion(ctx, tx, doc, text, reason, d)
	}
	if err != nil || !ok {
		return false, err
	}
	*saved = tree.Saved{Doc: *doc}
	return true, s.logDoc(ctx, tx, d, tree.DocSaved, doc)
}

// insert makes a document at version 1. It reports false if its scope has one by now.
func (s *Store) insert(ctx context.Context, tx txn, doc *tree.Doc, text tree.Doc, reason tree.SaveReason, d logEntry) (bool, error) {
	doc.Content, doc.ContentSHA256, doc.Status, doc.Version = text.Content, text.ContentSHA256, text.Status, 1
	doc.UpdatedAt, doc.UpdatedBy = d.at, d.actor
	n, err := tx.exec(ctx, insertDoc, doc.ID, doc.WorkspaceID, nullable(doc.FolderID), string(doc.Status), doc.Title,
		doc.ContentSHA256, tree.Chars(doc.Content), d.at.UnixNano(), d.actor, doc.Content)
	if n != 1 || err != nil {
		return false, err
	}
	if err := markFolder(ctx, tx, doc); err != nil {
		return false, err
	}
	return true, s.putRevision(ctx, tx, doc, reason)
}

func (s *Store) putVersion(ctx context.Context, tx txn, doc *tree.Doc, text tree.Doc, reason tree.SaveReason, d logEntry) error {
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

// putStatus is separate because it changes indexes, which most versions do not.
func (s *Store) putStatus(ctx context.Context, tx txn, doc *tree.Doc, d logEntry) error {
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

func (s *Store) putRevision(ctx context.Context, tx txn, doc *tree.Doc, reason tree.SaveReason) error {
	_, err := tx.exec(ctx, insertRevision, doc.ID, doc.Version, doc.ContentSHA256, tree.Chars(doc.Content),
		doc.UpdatedAt.UnixNano(), doc.UpdatedBy, string(reason), doc.Content)
	return err
}

// Archive implements [tree.Store].
func (s *Store) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	var now tree.ArchivedNow
	err := s.change(ctx, "archiving a document", p, func(ctx context.Context, tx txn) error {
		now = tree.ArchivedNow{}
		if err := s.enter(ctx, tx, p.Scope, ofDoc, string(p.FolderID)); err != nil {
			return err
		}
		doc, err := s.lockLive(ctx, tx, p.Scope)
		if err != nil {
			return err
		}
		if err := expect(p.ExpectedVersion, p.ExpectedDocID, doc); err != nil {
			return err
		}
		if doc != nil {
			now.Archived, now.Doc = true, doc
			if err := s.archive(ctx, tx, doc, p.Actor); err != nil {
				return err
			}
		}
		got, err := resolveScope(ctx, tx, p.Scope)
		now.Effective = got.effective(s.now())
		return err
	})
	return now, err
}

func (s *Store) archive(ctx context.Context, tx txn, doc *tree.Doc, actor string) error {
	text := tree.Doc{ContentSHA256: doc.ContentSHA256, Status: tree.Archived}
	const query = "SELECT content FROM thread_agents_doc WHERE id = $1"
	if _, err := tx.one(ctx, query, []any{doc.ID}, []any{&text.Content}); err != nil {
		return err
	}
	d, err := s.beginEntry(ctx, tx, doc.WorkspaceID, actor)
	if err != nil {
		return err
	}
	if err := s.putVersion(ctx, tx, doc, text, tree.Archive, d); err != nil {
		return err
	}
	return s.logDoc(ctx, tx, d, tree.DocArchived, doc)
}

// Restore implements [tree.Store]. If another caller makes a document for the scope at the same
// time, the unique index refuses the second, and it is judged again.
func (s *Store) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	var restored tree.Doc
	err := s.change(ctx, "restoring a document", p, func(ctx context.Context, tx txn) error {
		if err := s.enter(ctx, tx, p.Scope, ofDoc, string(p.FolderID)); err != nil {
			return err
		}
		had, err := s.lockLive(ctx, tx, p.Scope)
		if err != nil {
			return err
		}
		to, text, err := s.restorable(ctx, tx, p, had)
		if err != nil {
			return err
		}
		if p.ExpectedVersion != nil && *p.ExpectedVersion != to.Version {
			return tree.ConflictWith(p.ExpectedVersion, had)
		}
		d, err := s.beginEntry(ctx, tx, p.WorkspaceID, p.Actor)
		if err != nil {
			return err
		}
		if err := s.putVersion(ctx, tx, to, text, tree.Restore, d); err != nil {
			return err
		}
		restored = *to
		return s.logDoc(ctx, tx, d, tree.DocRestored, to)
	})
	return restored, err
}

// restorable returns the document that a text is restored to, and the text.
func (s *Store) restorable(ctx context.Context, tx txn, p tree.RestoreDoc, live *tree.Doc) (to *tree.Doc, text tree.Doc, err error) {
	// Not locked: changes of a document in the same scope wait anyway.
	const some = "SELECT " + headColumns + " FROM thread_agents_doc d WHERE "
	from := live
	if p.DocID != "" {
		from, err = oneDoc(ctx, tx, some+"d.workspace_id = $1 AND d.id = $2", []any{p.WorkspaceID, p.DocID})
	} else if live == nil {
		in, args := inScope("d.folder_id", p.Scope)
		from, err = oneDoc(ctx, tx, some+in+" AND d.status = 'archived' ORDER BY d.archived_seq DESC, d.id DESC LIMIT 1", args)
	}
	if err != nil {
		return nil, text, err
	}
	if from == nil {
		return nil, text, notFound("document", p.DocID)
	}
	const query = "SELECT content, content_sha256 FROM thread_agents_doc_revision WHERE doc_id = $1 AND version = $2"
	ok, err := tx.one(ctx, query, []any{from.ID, p.Version}, []any{&text.Content, &text.ContentSHA256})
	if err != nil {
		return nil, text, err
	}
	if !ok {
		return nil, text, tree.Errorf(tree.CodeNotFound, "version: document %q has no revision %d", from.ID, p.Version)
	}
	text.Status = tree.StatusOf(text.Content)
	if live != nil {
		return live, text, nil
	}
	if from.Status != tree.Archived || from.FolderID != p.FolderID {
		return nil, text, tree.Errorf(tree.CodeInvalid, "doc_id: %q is not an archived document of this scope, which has no other", from.ID)
	}
	return from, text, nil
}
