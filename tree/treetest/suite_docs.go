package treetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/tree"
)

// testSave: a first save makes version 1 and its revision, later ones the next.
func testSave(t *testing.T, x world) {
	ctx := t.Context()
	x.folder(t, "", "f")
	for _, place := range []tree.FolderID{"", "f"} {
		first := must(x.Save(ctx, tree.Save{Scope: x.scope(place), Content: "one ✓", Actor: "ann"}))(t)
		utc(t, "saved", first.Doc.CreatedAt, first.Doc.UpdatedAt)
		if first.Unchanged || !first.Doc.CreatedAt.Equal(first.Doc.UpdatedAt) || tree.CheckID("id", first.Doc.ID) != nil {
			t.Errorf("first save: %+v", first)
		}
		want := tree.Doc{
			ID: first.Doc.ID, WorkspaceID: x.w, FolderID: place, Status: tree.Active, Title: tree.Title,
			Content: "one ✓", ContentSHA256: tree.Sum("one ✓"), Version: 1,
			CreatedAt: first.Doc.CreatedAt, UpdatedAt: first.Doc.CreatedAt, CreatedBy: "ann", UpdatedBy: "ann",
		}
		same(t, "first", first.Doc, want)
		same(t, "read again", x.view(t, place).Explicit, &want)

		second := must(x.Save(ctx, tree.Save{Scope: x.scope(place), Content: "two", ExpectedVersion: new(int64(1)), SaveReason: tree.Autosave, Actor: "bob"}))(t)
		want.Content, want.ContentSHA256, want.Version = "two", tree.Sum("two"), 2
		want.UpdatedBy, want.UpdatedAt = "bob", second.Doc.UpdatedAt
		same(t, "second", second, tree.Saved{Doc: want})
		same(t, "read again", x.view(t, place).Explicit, &want)

		one, two := "one ✓", "two"
		same(t, "revisions", x.revisions(t, want.ID), []tree.Revision{
			{DocID: want.ID, Version: 2, ContentSHA256: tree.Sum(two), Chars: 3, SavedAt: want.UpdatedAt, SavedBy: "bob", SaveReason: tree.Autosave, Content: &two},
			{DocID: want.ID, Version: 1, ContentSHA256: tree.Sum(one), Chars: 5, SavedAt: want.CreatedAt, SavedBy: "ann", SaveReason: tree.Manual, Content: &one},
		})
	}
}

// testUnchanged: the text that is there already makes no version; a stale version
// is a conflict all the same.
func testUnchanged(t *testing.T, x world) {
	for _, content := range []string{"text", " "} {
		doc := x.save(t, "", content)
		before := x.newest(t)
		got := must(x.Save(t.Context(), tree.Save{Scope: x.scope(""), Content: content, ExpectedVersion: &doc.Version, Actor: "bob"}))(t)
		same(t, "unchanged", got, tree.Saved{Doc: doc, Unchanged: true})
		refused(x.Save(t.Context(), tree.Save{Scope: x.scope(""), Content: content, ExpectedVersion: new(doc.Version - 1)}))(t, tree.CodeConflict)
		x.unchanged(t, before)
		if n := len(x.revisions(t, doc.ID)); int64(n) != doc.Version {
			t.Errorf("%d revisions of version %d", n, doc.Version)
		}
	}
}

// testNormalised: line ends and one byte order mark; what is the same after that is
// unchanged.
func testNormalised(t *testing.T, x world) {
	doc := x.save(t, "", "\ufeff\ufeffa\r\nb\rc\n\r\n")
	const want = "\ufeffa\nb\nc\n\n"
	if doc.Content != want || doc.ContentSHA256 != tree.Sum(want) {
		t.Errorf("kept %q with the hash %s, want %q", doc.Content, doc.ContentSHA256, want)
	}
	if got := x.revisions(t, doc.ID)[0]; *got.Content != want || got.Chars != tree.Chars(want) {
		t.Errorf("revision %+v, want %q", got, want)
	}
	got := must(x.Save(t.Context(), tree.Save{Scope: x.scope(""), Content: "\ufeff" + want, ExpectedVersion: new(int64(1))}))(t)
	if !got.Unchanged {
		t.Errorf("saved %q again: %+v, want it unchanged", want, got)
	}
}

// testLimits: 65,536 characters are kept, after normalising; longer ones and what
// is no text is refused, and leaves nothing behind.
func testLimits(t *testing.T, x world) {
	save := func(content string) call {
		return erring("save", tree.Store.Save, tree.Save{Scope: x.scope(""), Content: content})
	}
	long := strings.Repeat("✓", tree.MaxChars)
	x.refuseAll(t, tree.CodeTooLarge, []call{save(long + "x"), save(strings.Repeat("\r", tree.MaxChars+1))})
	x.refuseAll(t, tree.CodeInvalid, []call{save("a\x00b"), save("\xff"), save("\xed\xa0\x80"), save(long[1:])})
	if got := x.view(t, ""); got.Explicit != nil {
		t.Fatalf("what was refused is there: version %d", got.Explicit.Version)
	}
	for _, content := range []string{long, strings.Repeat("\U0001F600", tree.MaxChars), "\ufeff" + strings.Repeat("\r\n", tree.MaxChars)} {
		doc := x.save(t, "", content)
		read := x.view(t, "").Explicit
		want := must(tree.Normalize(content))(t)
		if doc.Content != want || read.Content != want || tree.Chars(want) != tree.MaxChars {
			t.Errorf("saved %d characters, read %d, want %d", tree.Chars(doc.Content), tree.Chars(read.Content), tree.Chars(want))
		}
	}
}

// testDrafts: blank documents are the scope's own, and hide nothing.
func testDrafts(t *testing.T, x world) {
	x.folder(t, "", "f")
	if got := x.save(t, "", " \n\t"); got.Status != tree.Draft {
		t.Errorf("a blank document is %s", got.Status)
	}
	same(t, "only a draft", x.view(t, "f"), tree.View{})
	x.thread(t, "f", "t")
	if got := must(x.Resolve(t.Context(), tree.ThreadRef{WorkspaceID: x.w, ThreadID: "t"}))(t); got.Effective != nil || !got.Known {
		t.Errorf("a draft at the root resolves to %+v", got)
	}
	root := x.save(t, "", "rule")
	if root.Status != tree.Active {
		t.Errorf("a document with a text is %s", root.Status)
	}
	draft := x.save(t, "f", "")
	view := x.view(t, "f")
	same(t, "own", view.Explicit, &draft)
	same(t, "in effect", view.Effective, &tree.Effective{Doc: root, SourcePath: []string{}, Inherited: true, ResolvedForFolderID: "f"})
	if got := must(x.Resolve(t.Context(), tree.ThreadRef{WorkspaceID: x.w, ThreadID: "t"}))(t); got.Effective == nil || got.Effective.Doc.ID != root.ID {
		t.Errorf("below a draft %+v is in effect, want the root's", got.Effective)
	}
	x.save(t, "f", "own")
	if got := x.save(t, "f", "\u00a0\u3000"); got.Status != tree.Draft || got.Version != 3 {
		t.Errorf("emptied: %+v, want a draft of version 3", got)
	}
	if got := x.view(t, "f").Effective; got == nil || got.Doc.ID != root.ID {
		t.Errorf("once emptied, %+v is in effect, want the root's", got)
	}
}

// wantConflict expects a conflict that tells everything of the live document, which
// is nil for none.
func wantConflict[T any](_ T, err error) func(t *testing.T, expected *int64, live *tree.Doc) {
	return func(t *testing.T, expected *int64, live *tree.Doc) {
		t.Helper()
		e, ok := errors.AsType[*tree.Error](err)
		if !ok || e.Code != tree.CodeConflict || e.Conflict == nil {
			t.Errorf("error %v, want a conflict", err)
			return
		}
		want := &tree.Conflict{ExpectedVersion: expected}
		if live != nil {
			want.ActualVersion, want.ActualDocID, want.ActualContentSHA256 = &live.Version, &live.ID, &live.ContentSHA256
			want.UpdatedBy, want.UpdatedAt = &live.UpdatedBy, &live.UpdatedAt
		}
		same(t, "conflict", e.Conflict, want)
	}
}

// testConflicts: what is expected has to be what is there.
func testConflicts(t *testing.T, x world) {
	ctx := t.Context()
	x.folder(t, "", "f")
	x.save(t, "", "the root's is no reason")
	save := func(expected *int64, doc string) (tree.Saved, error) {
		return x.Save(ctx, tree.Save{Scope: x.scope("f"), Content: "mine", ExpectedVersion: expected, ExpectedDocID: doc, Actor: "bob"})
	}
	before := x.newest(t)
	for _, expected := range []int64{1, 7, -1} {
		wantConflict(save(&expected, ""))(t, &expected, nil)
	}
	wantConflict(save(nil, "01ARZ3NDEKTSV4RRFFQ69G5FAV"))(t, nil, nil)
	wantConflict(save(new(int64(0)), "01ARZ3NDEKTSV4RRFFQ69G5FAV"))(t, new(int64(0)), nil)
	x.unchanged(t, before)
	same(t, "nothing is left behind", x.view(t, "f").Explicit, (*tree.Doc)(nil))

	for _, content := range []string{"", "theirs", "newest"} {
		live := x.save(t, "f", content)
		before = x.newest(t)
		for _, expected := range []int64{0, live.Version - 1, live.Version + 1, -1} {
			wantConflict(save(&expected, ""))(t, &expected, &live)
			wantConflict(save(&expected, live.ID))(t, &expected, &live)
		}
		wantConflict(save(nil, ""))(t, nil, &live)
		wantConflict(save(&live.Version, x.view(t, "").Explicit.ID))(t, &live.Version, &live)
		x.unchanged(t, before)
		same(t, "still there", x.view(t, "f").Explicit, &live)
	}
}

// testSaveAfterArchive: a document made anew has version 1 again, and another id,
// which the guard sees.
func testSaveAfterArchive(t *testing.T, x world) {
	old := x.save(t, "", "one")
	x.archive(t, "")
	refused(x.Save(t.Context(), tree.Save{Scope: x.scope(""), Content: "mine", ExpectedVersion: &old.Version}))(t, tree.CodeConflict)
	anew := must(x.Save(t.Context(), tree.Save{Scope: x.scope(""), Content: "anew", ExpectedVersion: new(int64(0))}))(t).Doc
	if anew.ID == old.ID || anew.Version != 1 || anew.Status != tree.Active {
		t.Errorf("made anew: %+v, want version 1 of another than %s", anew, old.ID)
	}
	guarded := tree.Save{Scope: x.scope(""), Content: "mine", ExpectedVersion: new(int64(1)), ExpectedDocID: old.ID}
	wantConflict(x.Save(t.Context(), guarded))(t, new(int64(1)), &anew)
	guarded.ExpectedDocID = anew.ID
	if got := must(x.Save(t.Context(), guarded))(t).Doc; got.Version != 2 || got.ID != anew.ID {
		t.Errorf("saved %+v, want version 2", got)
	}
}

// testAutosave: it is kept as such, and has to say what it is based on.
func testAutosave(t *testing.T, x world) {
	p := tree.Save{Scope: x.scope(""), Content: "one", SaveReason: tree.Autosave}
	x.refuseAll(t, tree.CodeInvalid, []call{erring("on nothing said", tree.Store.Save, p)})
	p.ExpectedVersion = new(int64(0))
	first := must(x.Save(t.Context(), p))(t).Doc
	p.Content, p.ExpectedVersion = "two", nil
	x.refuseAll(t, tree.CodeInvalid, []call{erring("on nothing said", tree.Store.Save, p)})
	p.ExpectedVersion = new(int64(1))
	must(x.Save(t.Context(), p))(t)
	p.Content, p.ExpectedVersion, p.SaveReason = "three", new(int64(2)), tree.Manual
	must(x.Save(t.Context(), p))(t)
	var reasons []tree.SaveReason
	for _, r := range x.revisions(t, first.ID) {
		reasons = append(reasons, r.SaveReason)
	}
	same(t, "reasons", reasons, []tree.SaveReason{tree.Manual, tree.Autosave, tree.Autosave})
}

// testInheritance: the nearest active document above is in effect, and follows what
// happens to folders.
func testInheritance(t *testing.T, x world) {
	x.folders(t, "a", "b", "c")
	x.folder(t, "", "z")
	in := func(place, source tree.FolderID, content string, path ...string) {
		t.Helper()
		got := x.view(t, place).Effective
		if got == nil {
			t.Errorf("at %q nothing is in effect, want %q", place, content)
			return
		}
		utc(t, "resolved", got.ResolvedAt)
		want := *got
		want.SourceFolderID, want.SourcePath = source, append([]string{}, path...)
		want.Inherited, want.ResolvedForFolderID = place != source, place
		want.Doc.Content, want.Doc.FolderID, want.Doc.WorkspaceID = content, source, x.w
		same(t, "at "+string(place), *got, want)
	}
	same(t, "nothing", x.view(t, "c"), tree.View{})
	x.save(t, "a", "a's")
	same(t, "above it", x.view(t, ""), tree.View{})
	in("c", "a", "a's", "a")
	x.save(t, "", "root's")
	in("", "", "root's")
	in("z", "", "root's")
	in("a", "a", "a's", "a")
	in("c", "a", "a's", "a")
	x.save(t, "c", "c's")
	in("c", "c", "c's", "a", "b", "c")
	must(x.RenameFolder(t.Context(), tree.RenameFolder{WorkspaceID: x.w, FolderID: "b", Name: "Bé"}))(t)
	in("c", "c", "c's", "a", "Bé", "c")
	x.moveFolder(t, "b", "z")
	in("b", "", "root's")
	in("c", "c", "c's", "z", "Bé", "c")
	x.save(t, "z", "z's")
	in("b", "z", "z's", "z")
	x.archive(t, "z")
	in("b", "", "root's")
	x.archive(t, "")
	same(t, "nothing again", x.view(t, "b"), tree.View{})
}

// testResolve: a thread is told what is in effect where it is placed; one that is
// not known, what is in effect at the root.
func testResolve(t *testing.T, x world) {
	x.folders(t, "a", "b")
	x.thread(t, "b", "t")
	x.thread(t, "", "top")
	resolve := func(thread string) tree.Resolution {
		t.Helper()
		return must(x.Resolve(t.Context(), tree.ThreadRef{WorkspaceID: x.w, ThreadID: thread}))(t)
	}
	same(t, "nothing", resolve("t"), tree.Resolution{Known: true})
	same(t, "nothing, unknown", resolve("unknown"), tree.Resolution{})
	a, root := x.save(t, "a", "a's"), x.save(t, "", "root's")
	atRoot := &tree.Effective{Doc: root, SourcePath: []string{}}
	same(t, "inherited", resolve("t"), tree.Resolution{Known: true, Effective: &tree.Effective{
		Doc: a, SourceFolderID: "a", SourcePath: []string{"a"}, Inherited: true, ResolvedForFolderID: "b",
	}})
	same(t, "at the root", resolve("top"), tree.Resolution{Known: true, Effective: atRoot})
	same(t, "unknown", resolve("unknown"), tree.Resolution{Effective: atRoot})
	x.moveThread(t, "t", "a")
	same(t, "moved", resolve("t"), tree.Resolution{Known: true, Effective: &tree.Effective{
		Doc: a, SourceFolderID: "a", SourcePath: []string{"a"}, ResolvedForFolderID: "a",
	}})
	must(x.DeleteThread(t.Context(), tree.DeleteThread{WorkspaceID: x.w, ThreadID: "t"}))(t)
	same(t, "deleted", resolve("t"), tree.Resolution{Effective: atRoot})
}

// testAffected: what a scope's document is in effect for, or would be.
func testAffected(t *testing.T, x world) {
	affects := func(place tree.FolderID, want int) {
		t.Helper()
		if got := must(x.Affected(t.Context(), x.scope(place)))(t); got != want {
			t.Errorf("the document of %q affects %d folders, want %d", place, got, want)
		}
	}
	affects("", 0)
	x.folders(t, "a", "b", "c", "d")
	x.folder(t, "b", "e")
	x.folder(t, "", "z")
	affects("", 6)
	affects("a", 4)
	affects("d", 0)
	x.save(t, "", "root's")
	affects("", 6)
	x.save(t, "b", " ")
	affects("", 6)
	affects("b", 3)
	x.save(t, "b", "b's")
	affects("", 2)
	affects("a", 0)
	affects("b", 3)
	x.save(t, "d", "d's")
	affects("b", 2)
	x.moveFolder(t, "c", "z")
	affects("b", 1)
	affects("", 3)
	x.archive(t, "b")
	affects("", 5)
	must(x.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: x.w, FolderID: "a", Recursive: true}))(t)
	affects("", 2)
}
