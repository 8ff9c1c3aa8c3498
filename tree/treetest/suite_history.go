package treetest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// testArchive: a version and a revision with the same text; the document is hidden,
// and what is above is in effect.
func testArchive(t *testing.T, x world) {
	ctx := t.Context()
	x.folder(t, "", "f")
	nothing := must(x.Archive(ctx, tree.ArchiveDoc{Scope: x.scope("f")}))(t)
	same(t, "nothing there", nothing, tree.ArchivedNow{})
	root := x.save(t, "", "root's")
	inherited := &tree.Effective{Doc: root, SourcePath: []string{}, Inherited: true, ResolvedForFolderID: "f"}
	before := x.newest(t)
	nothing = must(x.Archive(ctx, tree.ArchiveDoc{Scope: x.scope("f"), ExpectedVersion: new(int64(0))}))(t)
	same(t, "nothing there, as expected", nothing, tree.ArchivedNow{Effective: inherited})
	x.unchanged(t, before)

	for _, content := range []string{"own", " "} {
		want := x.save(t, "f", content)
		got := must(x.Archive(ctx, tree.ArchiveDoc{Scope: x.scope("f"), ExpectedVersion: &want.Version, ExpectedDocID: want.ID, Actor: "bob"}))(t)
		if got.Doc == nil {
			t.Fatal("no archived document")
		}
		want.Status, want.Version, want.UpdatedBy, want.UpdatedAt = tree.Archived, want.Version+1, "bob", got.Doc.UpdatedAt
		same(t, "archived", got, tree.ArchivedNow{Archived: true, Doc: &want, Effective: inherited})
		same(t, "scope", x.view(t, "f"), tree.View{Effective: inherited})
		list := must(x.ArchivedDocs(ctx, tree.ArchivedQuery{Scope: x.scope("f"), IncludeContent: true, Limit: 1}))(t)
		live := want
		live.Version--
		x.wantArchived(t, list, live)
	}
	if docs := x.all(t).AgentsDocs; len(docs) != 1 {
		t.Errorf("documents of the tree %+v, want the root's", docs)
	}
	if got := x.archive(t, ""); got.ID != root.ID {
		t.Errorf("archived %+v, want the root's", got)
	}
	same(t, "nothing left", x.view(t, "f"), tree.View{})
}

// testArchiveConflicts: what is expected is compared, where anything is.
func testArchiveConflicts(t *testing.T, x world) {
	archive := func(expected *int64, doc string) (tree.ArchivedNow, error) {
		return x.Archive(t.Context(), tree.ArchiveDoc{Scope: x.scope(""), ExpectedVersion: expected, ExpectedDocID: doc})
	}
	before := x.newest(t)
	wantConflict(archive(new(int64(1)), ""))(t, new(int64(1)), nil)
	wantConflict(archive(nil, "01ARZ3NDEKTSV4RRFFQ69G5FAV"))(t, nil, nil)
	x.unchanged(t, before)
	x.save(t, "", "one")
	live := x.save(t, "", "two")
	before = x.newest(t)
	for _, expected := range []int64{0, 1, 3} {
		wantConflict(archive(&expected, ""))(t, &expected, &live)
	}
	wantConflict(archive(new(int64(2)), "01ARZ3NDEKTSV4RRFFQ69G5FAV"))(t, new(int64(2)), &live)
	wantConflict(archive(nil, "01ARZ3NDEKTSV4RRFFQ69G5FAV"))(t, nil, &live)
	x.unchanged(t, before)
	same(t, "still there", x.view(t, "").Explicit, &live)
	if got := must(archive(nil, live.ID))(t); !got.Archived {
		t.Errorf("%+v, want it archived", got)
	}
}

// restored expects a document to have become another's text by a restore, and to
// have a revision of that.
func (x world) restored(t *testing.T, got, was tree.Doc, content string) {
	t.Helper()
	utc(t, "restored", got.UpdatedAt)
	want := was
	want.Content, want.ContentSHA256, want.Status = content, tree.Sum(content), tree.StatusOf(content)
	want.Version, want.UpdatedBy, want.UpdatedAt = was.Version+1, "bob", got.UpdatedAt
	same(t, "restored", got, want)
	same(t, "read again", x.view(t, want.FolderID).Explicit, &want)
	list := x.revisions(t, want.ID)
	same(t, "revision", list[0], tree.Revision{
		DocID: want.ID, Version: want.Version, ContentSHA256: want.ContentSHA256, Chars: tree.Chars(content),
		SavedAt: got.UpdatedAt, SavedBy: "bob", SaveReason: tree.Restore, Content: &content,
	})
	if int64(len(list)) != want.Version {
		t.Errorf("%d revisions of version %d", len(list), want.Version)
	}
}

// restore restores a revision as bob, whom restored looks for.
func (x world) restore(t *testing.T, place tree.FolderID, doc string, v int64, expected *int64) tree.Doc {
	t.Helper()
	p := tree.RestoreDoc{Scope: x.scope(place), DocID: doc, Version: v, ExpectedVersion: expected, Actor: "bob"}
	return must(x.Restore(t.Context(), p))(t)
}

// testRestoreLive: a live document gets the text of a revision as its next version,
// be it its own, an archived document's or another scope's.
func testRestoreLive(t *testing.T, x world) {
	x.folders(t, "f", "g")
	x.save(t, "f", "archived's")
	archived := x.archive(t, "f")
	gone := x.save(t, "g", "of a deleted folder")
	must(x.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: x.w, FolderID: "g", Recursive: true}))(t)
	x.save(t, "", "root's")
	root := x.save(t, "", "root's newest")

	x.save(t, "f", "one")
	x.save(t, "f", " ")
	was := x.save(t, "f", "three")
	got := x.restore(t, "f", "", 1, nil)
	x.restored(t, got, was, "one")
	was, got = got, x.restore(t, "f", got.ID, 2, new(int64(4)))
	x.restored(t, got, was, " ")
	was, got = got, x.restore(t, "f", archived.ID, 1, new(int64(5)))
	x.restored(t, got, was, "archived's")
	was, got = got, x.restore(t, "f", gone.ID, 1, nil)
	x.restored(t, got, was, "of a deleted folder")
	was, got = got, x.restore(t, "f", root.ID, 1, nil)
	x.restored(t, got, was, "root's")
	was, got = got, x.restore(t, "f", "", got.Version, nil)
	x.restored(t, got, was, "root's") // the same text: a version all the same
	same(t, "where the text comes from", x.view(t, "").Explicit, &root)
}

// testRestoreArchived: where there is no live document an archived one of the scope
// comes back to life; the one that was archived last, if none is named.
func testRestoreArchived(t *testing.T, x world) {
	x.folder(t, "", "f")
	x.save(t, "f", "first")
	first := x.archive(t, "f")
	x.save(t, "f", "second")
	second := x.archive(t, "f")
	x.save(t, "", "root's is not asked for")
	x.archive(t, "")

	got := x.restore(t, "f", "", 1, nil)
	x.restored(t, got, second, "second")
	again := x.archive(t, "f")
	got = x.restore(t, "f", first.ID, 1, new(int64(2)))
	x.restored(t, got, first, "first")
	list := must(x.ArchivedDocs(t.Context(), tree.ArchivedQuery{Scope: x.scope("f")}))(t)
	if len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("archived documents %+v, want the second alone", list)
	}
	x.archive(t, "f")
	got = x.restore(t, "f", second.ID, again.Version, nil) // the archived revision itself
	x.restored(t, got, again, "second")
	saved := x.save(t, "f", "it lives")
	if saved.ID != second.ID || saved.Version != got.Version+1 {
		t.Errorf("saved %+v, want the next version of the restored one", saved)
	}
}

// testRestoreRefused: revisions that are not there, documents of elsewhere, and
// other versions than expected.
func testRestoreRefused(t *testing.T, x world) {
	x.folders(t, "f", "g")
	x.save(t, "f", "one")
	archived := x.archive(t, "f")
	live := x.save(t, "g", "live")
	restore := func(name string, p tree.RestoreDoc) call { return erring(name, tree.Store.Restore, p) }
	f, g, root := x.scope("f"), x.scope("g"), x.scope("")
	x.refuseAll(t, tree.CodeNotFound, []call{
		restore("no revision 3", tree.RestoreDoc{Scope: f, Version: 3}),
		restore("no revision 3 of it", tree.RestoreDoc{Scope: f, DocID: archived.ID, Version: 3}),
		restore("no revision 2", tree.RestoreDoc{Scope: g, Version: 2}),
		restore("no revision 9 of another", tree.RestoreDoc{Scope: g, DocID: archived.ID, Version: 9}),
		restore("nothing archived", tree.RestoreDoc{Scope: root, Version: 1}),
	})
	x.refuseAll(t, tree.CodeInvalid, []call{
		restore("archived elsewhere", tree.RestoreDoc{Scope: root, DocID: archived.ID, Version: 1}),
		restore("live elsewhere", tree.RestoreDoc{Scope: f, DocID: live.ID, Version: 1}),
	})
	before := x.newest(t)
	for _, expected := range []int64{0, 1, 3} {
		wantConflict(x.Restore(t.Context(), tree.RestoreDoc{Scope: f, Version: 1, ExpectedVersion: &expected}))(t, &expected, nil)
	}
	for _, expected := range []int64{0, 2} {
		wantConflict(x.Restore(t.Context(), tree.RestoreDoc{Scope: g, Version: 1, ExpectedVersion: &expected}))(t, &expected, &live)
		wantConflict(x.Restore(t.Context(), tree.RestoreDoc{Scope: g, DocID: archived.ID, Version: 1, ExpectedVersion: &expected}))(t, &expected, &live)
	}
	x.unchanged(t, before)
}

// testRevisions: newest first, in pages, of documents live and archived.
func testRevisions(t *testing.T, x world) {
	const n = 104
	var doc tree.Doc
	for v := 1; v <= n; v++ {
		doc = x.save(t, "", fmt.Sprintf("text %d", v))
	}
	x.folder(t, "", "f")
	list := func(q tree.RevisionQuery) []tree.Revision {
		t.Helper()
		q.WorkspaceID = x.w
		return must(x.Revisions(t.Context(), q))(t)
	}
	check := func(name string, got []tree.Revision, content bool, from, to int64) {
		t.Helper()
		want := []tree.Revision{}
		for v := from; v >= to; v-- {
			text := fmt.Sprintf("text %d", v)
			r := tree.Revision{DocID: doc.ID, Version: v, ContentSHA256: tree.Sum(text), Chars: len(text), SavedBy: "ann", SaveReason: tree.Manual}
			if content {
				r.Content = &text
			}
			want = append(want, r)
		}
		for n := range got {
			utc(t, name, got[n].SavedAt)
			got[n].SavedAt = time.Time{}
		}
		same(t, name, got, want)
	}
	check("default", list(tree.RevisionQuery{}), false, n, n-tree.DefaultLimit+1)
	check("first page", list(tree.RevisionQuery{Limit: 3, IncludeContent: true}), true, n, n-2)
	check("second page", list(tree.RevisionQuery{Limit: 3, BeforeVersion: n - 2}), false, n-3, n-5)
	check("last page", list(tree.RevisionQuery{Limit: 3, BeforeVersion: 3, IncludeContent: true}), true, 2, 1)
	check("behind the last", list(tree.RevisionQuery{BeforeVersion: 1}), false, 0, 1)
	check("from far above", list(tree.RevisionQuery{BeforeVersion: 1 << 40, Limit: 1}), false, n, n)
	check("all", list(tree.RevisionQuery{Limit: tree.MaxLimit}), false, n, 1)
	archived := x.archive(t, "")
	asked := tree.RevisionQuery{Scope: tree.Scope{FolderID: "f"}, DocID: archived.ID, BeforeVersion: n + 1, Limit: 2}
	check("archived, from another scope", list(asked), false, n, n-1)
	asked.FolderID = "deleted-or-not"
	check("archived, from no scope", list(asked), false, n, n-1)
}

// testArchivedDocs: the one that was archived last first; of a scope or of all,
// deleted folders included.
func testArchivedDocs(t *testing.T, x world) {
	ctx := t.Context()
	x.folder(t, "", "f")
	list := func(q tree.ArchivedQuery) []tree.ArchivedDoc {
		t.Helper()
		q.WorkspaceID = x.w
		return must(x.ArchivedDocs(ctx, q))(t)
	}
	if got := list(tree.ArchivedQuery{}); got == nil || len(got) != 0 {
		t.Errorf("%+v, want an empty list", got)
	}
	var ids []string
	for n := range 3 {
		for _, place := range []tree.FolderID{"", "f"} {
			x.save(t, place, fmt.Sprintf("text %d of %q", n, place))
			ids = append(ids, x.archive(t, place).ID)
		}
	}
	x.save(t, "f", "live")
	slices.Reverse(ids)
	check := func(name string, got []tree.ArchivedDoc, want ...string) {
		t.Helper()
		found := []string{}
		for _, d := range got {
			utc(t, name, d.ArchivedAt)
			found = append(found, d.ID)
		}
		same(t, name, found, want)
	}
	check("root", list(tree.ArchivedQuery{}), ids[1], ids[3], ids[5])
	check("folder", list(tree.ArchivedQuery{Scope: tree.Scope{FolderID: "f"}}), ids[0], ids[2], ids[4])
	check("all", list(tree.ArchivedQuery{All: true}), ids...)
	check("limit", list(tree.ArchivedQuery{All: true, Limit: 2}), ids[:2]...)
	got := list(tree.ArchivedQuery{Limit: 1, IncludeContent: true})[0]
	if got.Content == nil || *got.Content != `text 2 of ""` || got.ArchivedBy != "ann" || got.Version != 2 || got.Status != tree.Archived {
		t.Errorf("archived %+v", got)
	}
	if got := list(tree.ArchivedQuery{})[0]; got.Content != nil {
		t.Errorf("a text that was not asked for: %q", *got.Content)
	}
	must(x.DeleteFolder(ctx, tree.DeleteFolder{WorkspaceID: x.w, FolderID: "f", Recursive: true}))(t)
	deleted := list(tree.ArchivedQuery{Scope: tree.Scope{FolderID: "f"}, All: true})
	if len(deleted) != 7 || deleted[0].FolderID != "f" {
		t.Errorf("%d archived documents, want those of the deleted folder too", len(deleted))
	}
}

// testThinYoung: what was saved lately stays; much later the newest stays, and what
// was no autosave.
func testThinYoung(t *testing.T, x world) {
	doc := x.save(t, "", "manual")
	for v := range int64(6) {
		p := tree.Save{Scope: x.scope(""), Content: strconv.FormatInt(v, 10), ExpectedVersion: new(v + 1), SaveReason: tree.Autosave}
		doc = must(x.Save(t.Context(), p))(t).Doc
	}
	if n := must(x.Thin(t.Context(), doc.UpdatedAt.Add(tree.ThinAge-time.Minute)))(t); n != 0 {
		t.Errorf("%d young revisions were taken", n)
	}
	taken := must(x.Thin(t.Context(), doc.UpdatedAt.Add(tree.ThinAge+time.Hour)))(t)
	left := x.revisions(t, doc.ID)
	if taken == 0 || taken+len(left) != 7 || left[0].Version != 7 || left[len(left)-1].SaveReason != tree.Manual {
		t.Errorf("%d revisions were taken, %+v are left; want the newest and the manual one among them", taken, left)
	}
	if n := must(x.Thin(t.Context(), doc.UpdatedAt.Add(tree.ThinAge+time.Hour)))(t); n != 0 {
		t.Errorf("%d revisions were taken by a second time", n)
	}
	for v := range int64(7) {
		if !slices.ContainsFunc(left, func(r tree.Revision) bool { return r.Version == v+1 }) {
			refused(x.Restore(t.Context(), tree.RestoreDoc{Scope: x.scope(""), Version: v + 1}))(t, tree.CodeNotFound)
		}
	}
	same(t, "document", x.view(t, "").Explicit, &doc)
}
