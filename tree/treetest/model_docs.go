package treetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// liveDocs are the live documents by their scopes.
func (sp *space) liveDocs() map[tree.FolderID]*document {
	docs := map[tree.FolderID]*document{}
	for _, d := range sp.docs {
		if d.Status != tree.Archived {
			docs[d.FolderID] = d
		}
	}
	return docs
}

// live is the live document of a scope, nil for none.
func (sp *space) live(place tree.FolderID) *document { return sp.liveDocs()[place] }

// liveDoc is live as a [tree.Doc] of its own.
func (sp *space) liveDoc(place tree.FolderID) *tree.Doc {
	d := sp.live(place)
	if d == nil {
		return nil
	}
	doc := d.Doc
	return &doc
}

// archived are the archived documents, the one that was archived last first.
func (sp *space) archived(of func(place tree.FolderID) bool) []*document {
	var list []*document
	for _, d := range sp.docs {
		if d.Status == tree.Archived && of(d.FolderID) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *document) int {
		return cmp.Or(cmp.Compare(b.archivedSeq, a.archivedSeq), cmp.Compare(b.ID, a.ID))
	})
	return list
}

// effective is the document in effect at a place, nil for none.
func (sp *space) effective(place tree.FolderID, at time.Time) *tree.Effective {
	docs := sp.liveDocs()
	up := sp.up(place)
	source := place
	for docs[source] == nil || docs[source].Status != tree.Active {
		if source == "" {
			return nil
		}
		source = up[0].ParentID
		up = up[1:]
	}
	path := []string{}
	for _, f := range up {
		path = append(path, f.Name)
	}
	slices.Reverse(path)
	return &tree.Effective{
		Doc: docs[source].Doc, SourceFolderID: source, SourcePath: path,
		Inherited: source != place, ResolvedForFolderID: place, ResolvedAt: at,
	}
}

// version makes a live document's next version, or brings it back to life.
func (m *Model) version(d *document, content string, reason tree.SaveReason, actor string, at time.Time) {
	d.Version++
	d.Content, d.ContentSHA256, d.Status = content, tree.Sum(content), tree.StatusOf(content)
	if reason == tree.Archive {
		d.Status = tree.Archived
		d.archivedSeq, d.archivedAt, d.archivedBy = m.seq+1, at, actor
	}
	d.UpdatedAt, d.UpdatedBy = at, actor
	d.revisions = append(d.revisions, revision{
		content: content,
		Revision: tree.Revision{
			DocID: d.ID, Version: d.Version, ContentSHA256: d.ContentSHA256, Chars: tree.Chars(content),
			SavedAt: at, SavedBy: actor, SaveReason: reason,
		},
	})
}

// archive puts a live document away.
func (m *Model) archive(d *document, actor string, at time.Time) tree.Change {
	m.version(d, d.Content, tree.Archive, actor, at)
	return docChange(tree.DocArchived, d)
}

// docChange tells of a document as it is by now.
func docChange(action tree.Action, d *document) tree.Change {
	s := d.Summary()
	return tree.Change{Action: action, Doc: &s}
}

// inScope starts a call about a scope that has to be there.
func (m *Model) inScope(ctx context.Context, s tree.Scope, invalid error) (*space, error) {
	sp, err := m.inSpace(ctx, s.WorkspaceID, invalid)
	if err != nil {
		return nil, err
	}
	if err := sp.place(s.FolderID); err != nil {
		m.mu.Unlock()
		return nil, err
	}
	return sp, nil
}

// Doc implements tree.Store.
func (m *Model) Doc(ctx context.Context, s tree.Scope) (tree.View, error) {
	sp, err := m.inScope(ctx, s, s.Check())
	if err != nil {
		return tree.View{}, err
	}
	defer m.mu.Unlock()

	return tree.View{Explicit: sp.liveDoc(s.FolderID), Effective: sp.effective(s.FolderID, m.now())}, nil
}

// Save implements tree.Store.
func (m *Model) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	content, invalid := tree.Normalize(p.Content)
	sp, err := m.inScope(ctx, p.Scope, cmp.Or(p.Check(), invalid))
	if err != nil {
		return tree.Saved{}, err
	}
	defer m.mu.Unlock()

	expected := int64(0)
	if p.ExpectedVersion != nil {
		expected = *p.ExpectedVersion
	}
	d := sp.live(p.FolderID)
	if d == nil && (expected != 0 || p.ExpectedDocID != "") ||
		d != nil && (expected != d.Version || p.ExpectedDocID != "" && p.ExpectedDocID != d.ID) {
		return tree.Saved{}, tree.ConflictWith(p.ExpectedVersion, sp.liveDoc(p.FolderID))
	}
	if d != nil && d.ContentSHA256 == tree.Sum(content) {
		return tree.Saved{Doc: d.Doc, Unchanged: true}, nil
	}
	at := m.now()
	if d == nil {
		d = &document{Doc: tree.Doc{
			ID: m.newID(), WorkspaceID: p.WorkspaceID, FolderID: p.FolderID,
			Title: tree.Title, CreatedAt: at, CreatedBy: p.Actor,
		}}
		sp.docs[d.ID] = d
	}
	m.version(d, content, cmp.Or(p.SaveReason, tree.Manual), p.Actor, at)
	m.commit(sp.ID, p.Actor, at, docChange(tree.DocSaved, d))
	return tree.Saved{Doc: d.Doc}, nil
}

// Archive implements tree.Store.
func (m *Model) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	sp, err := m.inScope(ctx, p.Scope, p.Check())
	if err != nil {
		return tree.ArchivedNow{}, err
	}
	defer m.mu.Unlock()

	d := sp.live(p.FolderID)
	version, id := int64(0), ""
	if d != nil {
		version, id = d.Version, d.ID
	}
	if p.ExpectedVersion != nil && *p.ExpectedVersion != version || p.ExpectedDocID != "" && p.ExpectedDocID != id {
		return tree.ArchivedNow{}, tree.ConflictWith(p.ExpectedVersion, sp.liveDoc(p.FolderID))
	}
	at := m.now()
	if d == nil {
		return tree.ArchivedNow{Effective: sp.effective(p.FolderID, at)}, nil
	}
	m.commit(sp.ID, p.Actor, at, m.archive(d, p.Actor, at))
	doc := d.Doc
	return tree.ArchivedNow{Archived: true, Doc: &doc, Effective: sp.effective(p.FolderID, at)}, nil
}

// Restore implements tree.Store.
func (m *Model) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	sp, err := m.inScope(ctx, p.Scope, p.Check())
	if err != nil {
		return tree.Doc{}, err
	}
	defer m.mu.Unlock()

	live := sp.live(p.FolderID)
	from, content, err := sp.restorable(p, live)
	if err != nil {
		return tree.Doc{}, err
	}
	to := cmp.Or(live, from)
	if live == nil && (from.Status != tree.Archived || from.FolderID != p.FolderID) {
		return tree.Doc{}, tree.Errorf(tree.CodeInvalid, "doc_id: %q is no archived document of this scope, which has no other", from.ID)
	}
	if p.ExpectedVersion != nil && *p.ExpectedVersion != to.Version {
		return tree.Doc{}, tree.ConflictWith(p.ExpectedVersion, sp.liveDoc(p.FolderID))
	}
	at := m.now()
	m.version(to, content, tree.Restore, p.Actor, at)
	m.commit(sp.ID, p.Actor, at, docChange(tree.DocRestored, to))
	return to.Doc, nil
}

// restorable is the document that a text is restored from, and the text.
func (sp *space) restorable(p tree.RestoreDoc, live *document) (*document, string, error) {
	from := live
	if p.DocID != "" {
		from = sp.docs[p.DocID]
	} else if live == nil {
		list := sp.archived(func(place tree.FolderID) bool { return place == p.FolderID })
		if len(list) > 0 {
			from = list[0]
		}
	}
	if from == nil {
		return nil, "", notFound("document", p.DocID)
	}
	for _, r := range from.revisions {
		if r.Version == p.Version {
			return from, r.content, nil
		}
	}
	return nil, "", tree.Errorf(tree.CodeNotFound, "version: document %q has no revision %d", from.ID, p.Version)
}

// Revisions implements tree.Store.
func (m *Model) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	sp, err := m.inSpace(ctx, q.WorkspaceID, q.Check())
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()

	d := sp.docs[q.DocID]
	if q.DocID == "" {
		if err := sp.place(q.FolderID); err != nil {
			return nil, err
		}
		d = sp.live(q.FolderID)
	}
	if d == nil {
		return nil, notFound("document", q.DocID)
	}
	list := []tree.Revision{}
	for _, r := range slices.Backward(d.revisions) {
		if q.BeforeVersion != 0 && r.Version >= q.BeforeVersion {
			continue
		}
		if len(list) == cmp.Or(q.Limit, tree.DefaultLimit) {
			break
		}
		got := r.Revision
		if q.IncludeContent {
			got.Content = &r.content
		}
		list = append(list, got)
	}
	return list, nil
}

// ArchivedDocs implements tree.Store.
func (m *Model) ArchivedDocs(ctx context.Context, q tree.ArchivedQuery) ([]tree.ArchivedDoc, error) {
	sp, err := m.inSpace(ctx, q.WorkspaceID, q.Check())
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()

	if !q.All {
		if err := sp.place(q.FolderID); err != nil {
			return nil, err
		}
	}
	list := []tree.ArchivedDoc{}
	for _, d := range sp.archived(func(place tree.FolderID) bool { return q.All || place == q.FolderID }) {
		if len(list) == cmp.Or(q.Limit, tree.DefaultLimit) {
			break
		}
		got := tree.ArchivedDoc{Summary: d.Summary(), ArchivedAt: d.archivedAt, ArchivedBy: d.archivedBy}
		if q.IncludeContent {
			content := d.Content
			got.Content = &content
		}
		list = append(list, got)
	}
	return list, nil
}

// Resolve implements tree.Store.
func (m *Model) Resolve(ctx context.Context, ref tree.ThreadRef) (tree.Resolution, error) {
	sp, err := m.inSpace(ctx, ref.WorkspaceID, ref.Check())
	if err != nil {
		return tree.Resolution{}, err
	}
	defer m.mu.Unlock()

	t := sp.threads[ref.ThreadID]
	if t == nil || t.deleted {
		return tree.Resolution{Effective: sp.effective("", m.now())}, nil
	}
	return tree.Resolution{Effective: sp.effective(t.FolderID, m.now()), Known: true}, nil
}

// Affected implements tree.Store.
func (m *Model) Affected(ctx context.Context, s tree.Scope) (int, error) {
	sp, err := m.inScope(ctx, s, s.Check())
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()

	docs := sp.liveDocs()
	active := func(f *folder) bool {
		d := docs[tree.FolderID(f.ID)]
		return d != nil && d.Status == tree.Active
	}
	folders, depths := sp.below(s.FolderID)
	n := 0
	for _, f := range folders {
		// What lies between: from the folder up to below the scope.
		between := sp.up(tree.FolderID(f.ID))[:depths[f.ID]]
		if !slices.ContainsFunc(between, active) {
			n++
		}
	}
	return n, nil
}
