package treestore

import (
	"context"

	"github.com/grapnelhq/grapnel/tree"
)

// Archive implements [tree.Store].
func (s *Store) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	if err := p.Check(); err != nil {
		return tree.ArchivedNow{}, err
	}
	var now tree.ArchivedNow
	err := s.change(ctx, "archiving a document", func(ctx context.Context, tx txn) error {
		now = tree.ArchivedNow{}
		if err := s.enter(ctx, tx, p.Scope, ofDoc, string(p.FolderID)); err != nil {
			return err
		}
		doc, err := s.lockLive(ctx, tx, p.Scope)
		if err != nil {
			return err
		}
		if p.ExpectedVersion != nil && *p.ExpectedVersion != versionOf(doc) || p.ExpectedDocID != "" && p.ExpectedDocID != idOf(doc) {
			return tree.ConflictWith(p.ExpectedVersion, doc)
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

// archive puts a live document away, with its text as a version.
func (s *Store) archive(ctx context.Context, tx txn, doc *tree.Doc, actor string) error {
	text := tree.Doc{ContentSHA256: doc.ContentSHA256, Status: tree.Archived}
	const query = "SELECT content FROM thread_agents_doc WHERE id = $1"
	if _, err := tx.one(ctx, query, []any{doc.ID}, []any{&text.Content}); err != nil {
		return err
	}
	d, err := s.deed(ctx, tx, doc.WorkspaceID, actor)
	if err != nil {
		return err
	}
	if err := s.putVersion(ctx, tx, doc, text, tree.Archive, d); err != nil {
		return err
	}
	return s.logDoc(ctx, tx, d, tree.DocArchived, doc)
}

// Restore implements [tree.Store]. Where somebody else makes a document for the
// scope at the same time, the one index refuses the second, and it is judged again.
func (s *Store) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	if err := p.Check(); err != nil {
		return tree.Doc{}, err
	}
	var restored tree.Doc
	err := s.change(ctx, "restoring a document", func(ctx context.Context, tx txn) error {
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
		d, err := s.deed(ctx, tx, p.WorkspaceID, p.Actor)
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

// restorable returns the document that gets a text, and the text. Live is nil for
// none.
func (s *Store) restorable(ctx context.Context, tx txn, p tree.RestoreDoc, live *tree.Doc) (to *tree.Doc, text tree.Doc, err error) {
	from := live
	if p.DocID != "" {
		from, err = s.someDoc(ctx, tx, "d.workspace_id = $1 AND d.id = $2", []any{p.WorkspaceID, p.DocID})
	} else if live == nil {
		in, args := inScope("d.folder_id", p.Scope)
		from, err = s.someDoc(ctx, tx, in+" AND d.status = 'archived' ORDER BY d.archived_seq DESC, d.id DESC LIMIT 1", args)
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
		return nil, text, tree.Errorf(tree.CodeInvalid, "doc_id: %q is no archived document of this scope, which has no other", from.ID)
	}
	return from, text, nil
}

// someDoc returns one document without its text; nil for none. It is not locked: who
// changes documents of its scope waits, and of others it is only read.
func (s *Store) someDoc(ctx context.Context, tx txn, where string, args []any) (*tree.Doc, error) {
	var h head
	ok, err := tx.one(ctx, "SELECT "+headColumns+" FROM thread_agents_doc d WHERE "+where, args, h.into())
	if err != nil || !ok {
		return nil, err
	}
	return h.read(), nil
}
