package treetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/tree"
)

func (sp *space) liveDocs() map[tree.FolderID]*document {
	docs := map[tree.FolderID]*document{}
	for _, d := range sp.docs {
		if d.Status != tree.Archived {
			docs[d.FolderID] = d
		}
	}
	return docs
}

func (sp *space) live(place tree.FolderID) *document { return sp.liveDocs()[place] }

func (d *document) doc() *tree.Doc {
	if d == nil {
		return nil
	}
	doc := d.Doc
	return &doc
}

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
	for _, f := range slices.Backward(up) {
		path = append(path, f.Name)
	}
	return &tree.Effective{
		Doc: docs[source].Doc, SourceFolderID: source, SourcePath: path,
		Inherited: source != place, ResolvedForFolderID: place, ResolvedAt: at,
	}
}

func (m *model) version(d *document, content string, reason tree.SaveReason, actor string, at time.Time) {
	d.Version++
	d.Content, d.ContentSHA256, d.Status = content, tree.Sum(content), tree.StatusOf(content)
	if reason == tree.Archive {
		d.Status = tree.Archived
		d.archivedSeq, d.archivedAt, d.archivedBy = m.seq+1, at, actor
	}
	d.UpdatedAt, d.UpdatedBy = at, actor
	d.revisions = append(d.revisions, revision{content: content, Revision: tree.Revision{
		DocID: d.ID, Version: d.Version, ContentSHA256: d.ContentSHA256, Chars: tree.Chars(content),
		SavedAt: at, SavedBy: actor, SaveReason: reason,
	}})
}

func (m *model) archive(d *document, actor string, at time.Time) tree.Change {
	m.version(d, d.Content, tree.Archive, actor, at)
	return docChange(tree.DocArchived, d)
}

func docChange(action tree.Action, d *document) tree.Change {
	s := d.Summary()
	return tree.Change{Action: action, Doc: &s}
}

func (m *model) Doc(ctx context.Context, s tree.Scope) (tree.View, error) {
	return inScope(ctx, m, s, tree.Check(s), func(sp *space) (tree.View, error) {
		return tree.View{Explicit: sp.live(s.FolderID).doc(), Effective: sp.effective(s.FolderID, m.now())}, nil
	})
}

func (m *model) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	content, invalid := tree.Normalize(p.Content)
	return inScope(ctx, m, p.Scope, cmp.Or(tree.Check(p), invalid), func(sp *space) (tree.Saved, error) {
		expected := int64(0)
		if p.ExpectedVersion != nil {
			expected = *p.ExpectedVersion
		}
		d := sp.live(p.FolderID)
		if d == nil && (expected != 0 || p.ExpectedDocID != "") ||
			d != nil && (expected != d.Version || p.ExpectedDocID != "" && p.ExpectedDocID != d.ID) {
			return tree.Saved{}, tree.ConflictWith(p.ExpectedVersion, d.doc())
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
	})
}

func (m *model) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	return inScope(ctx, m, p.Scope, tree.Check(p), func(sp *space) (tree.ArchivedNow, error) {
		d := sp.live(p.FolderID)
		version, id := int64(0), ""
		if d != nil {
			version, id = d.Version, d.ID
		}
		if p.ExpectedVersion != nil && *p.ExpectedVersion != version || p.ExpectedDocID != "" && p.ExpectedDocID != id {
			return tree.ArchivedNow{}, tree.ConflictWith(p.ExpectedVersion, d.doc())
		}
		at := m.now()
		if d != nil {
			m.commit(sp.ID, p.Actor, at, m.archive(d, p.Actor, at))
		}
		return tree.ArchivedNow{Archived: d != nil, Doc: d.doc(), Effective: sp.effective(p.FolderID, at)}, nil
	})
}

func (m *model) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	return inScope(ctx, m, p.Scope, tree.Check(p), func(sp *space) (tree.Doc, error) {
		live := sp.live(p.FolderID)
		from, content, err := sp.restorable(p, live)
		if err != nil {
			return tree.Doc{}, err
		}
		to := cmp.Or(live, from)
		if live == nil && (from.Status != tree.Archived || from.FolderID != p.FolderID) {
			return tree.Doc{}, refuse(tree.CodeInvalid)
		}
		if p.ExpectedVersion != nil && *p.ExpectedVersion != to.Version {
			return tree.Doc{}, tree.ConflictWith(p.ExpectedVersion, live.doc())
		}
		at := m.now()
		m.version(to, content, tree.Restore, p.Actor, at)
		m.commit(sp.ID, p.Actor, at, docChange(tree.DocRestored, to))
		return to.Doc, nil
	})
}

func (sp *space) restorable(p tree.RestoreDoc, live *document) (*document, string, error) {
	from := live
	if p.DocID != "" {
		from = sp.docs[p.DocID]
	} else if list := sp.archived(func(place tree.FolderID) bool { return place == p.FolderID }); live == nil && len(list) > 0 {
		from = list[0]
	}
	if from == nil {
		return nil, "", refuse(tree.CodeNotFound)
	}
	for _, r := range from.revisions {
		if r.Version == p.Version {
			return from, r.content, nil
		}
	}
	return nil, "", refuse(tree.CodeNotFound)
}

func (m *model) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	return in(ctx, m, q.WorkspaceID, tree.Check(q), func(sp *space) ([]tree.Revision, error) {
		d := sp.docs[q.DocID]
		if q.DocID == "" {
			if err := sp.place(q.FolderID); err != nil {
				return nil, err
			}
			d = sp.live(q.FolderID)
		}
		if d == nil {
			return nil, refuse(tree.CodeNotFound)
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
	})
}

func (m *model) ArchivedDocs(ctx context.Context, q tree.ArchivedQuery) ([]tree.ArchivedDoc, error) {
	scope := q.Scope
	if q.All {
		scope.FolderID = ""
	}
	return inScope(ctx, m, scope, tree.Check(q), func(sp *space) ([]tree.ArchivedDoc, error) {
		list := []tree.ArchivedDoc{}
		for _, d := range sp.archived(func(place tree.FolderID) bool { return q.All || place == q.FolderID }) {
			if len(list) == cmp.Or(q.Limit, tree.DefaultLimit) {
				break
			}
			got := tree.ArchivedDoc{Summary: d.Summary(), ArchivedAt: d.archivedAt, ArchivedBy: d.archivedBy}
			if q.IncludeContent {
				got.Content = &d.doc().Content
			}
			list = append(list, got)
		}
		return list, nil
	})
}

func (m *model) Resolve(ctx context.Context, ref tree.ThreadRef) (tree.Resolution, error) {
	return in(ctx, m, ref.WorkspaceID, tree.Check(ref), func(sp *space) (tree.Resolution, error) {
		t := sp.threads[ref.ThreadID]
		if t == nil || t.deleted {
			return tree.Resolution{Effective: sp.effective("", m.now())}, nil
		}
		return tree.Resolution{Effective: sp.effective(t.FolderID, m.now()), Known: true}, nil
	})
}

func (m *model) Affected(ctx context.Context, s tree.Scope) (int, error) {
	return inScope(ctx, m, s, tree.Check(s), func(sp *space) (int, error) {
		docs := sp.liveDocs()
		active := func(f *folder) bool {
			d := docs[tree.FolderID(f.ID)]
			return d != nil && d.Status == tree.Active
		}
		folders, depths := sp.below(s.FolderID)
		n := 0
		for _, f := range folders {
			// The folders between this one and the scope.
			if between := sp.up(tree.FolderID(f.ID))[:depths[f.ID]]; !slices.ContainsFunc(between, active) {
				n++
			}
		}
		return n, nil
	})
}
