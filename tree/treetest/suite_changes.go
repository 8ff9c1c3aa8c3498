package treetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// listenPatience is how long a store may take to tell of a change.
const listenPatience = 30 * time.Second

// told compares changes with what is expected, numbers and times left out, which
// are checked for themselves.
func told(t *testing.T, got []tree.Change, want ...tree.Change) {
	t.Helper()
	for n := range got {
		utc(t, "change", got[n].At)
		if n > 0 && got[n].Seq < got[n-1].Seq || got[n].Seq <= 0 {
			t.Errorf("change %d has the number %d", n, got[n].Seq)
		}
		got[n].Seq, got[n].At = 0, time.Time{}
	}
	same(t, "changes", got, want)
}

// testChanges: every kind of change is in the log, with what it made of things.
func testChanges(t *testing.T, x world) {
	ctx := t.Context()
	from := x.newest(t)
	var want []tree.Change
	wants := func(action tree.Action, actor string, c tree.Change) {
		c.Action, c.Actor, c.WorkspaceID = action, actor, cmp.Or(c.WorkspaceID, x.w)
		want = append(want, c)
	}
	other := must(x.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "w2", Name: "Other", Actor: "ann"}))(t)
	wants(tree.Created, "ann", tree.Change{WorkspaceID: "w2", Workspace: &other})
	renamed := must(x.RenameWorkspace(ctx, tree.RenameWorkspace{WorkspaceID: "w2", Name: "Else", Actor: "bob"}))(t)
	wants(tree.Renamed, "bob", tree.Change{WorkspaceID: "w2", Workspace: &renamed})
	must(x.DeleteWorkspace(ctx, tree.DeleteWorkspace{WorkspaceID: "w2"}))(t)
	wants(tree.Deleted, "", tree.Change{WorkspaceID: "w2", Workspace: &renamed})

	made := must(x.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: x.w, Name: "f", Actor: "ann"}))(t)
	wants(tree.Created, "ann", tree.Change{Folder: &made})
	named := must(x.RenameFolder(ctx, tree.RenameFolder{WorkspaceID: x.w, FolderID: made.ID, Name: "g", Actor: "bob"}))(t)
	wants(tree.Renamed, "bob", tree.Change{Folder: &named})
	x.folder(t, "", "p")
	wants(tree.Created, "", tree.Change{Folder: &tree.Folder{ID: "p", Name: "p"}})
	moved := must(x.MoveFolder(ctx, tree.MoveFolder{WorkspaceID: x.w, FolderID: made.ID, ParentID: "p", Actor: "eve"}))(t)
	wants(tree.Moved, "eve", tree.Change{Folder: &moved})

	x.thread(t, "p", "t")
	wants(tree.Created, "", tree.Change{Thread: &tree.Thread{ID: "t", FolderID: "p", Title: "t"}})
	must(x.RenameThread(ctx, tree.RenameThread{WorkspaceID: x.w, ThreadID: "t", Title: "u", Actor: "bob"}))(t)
	wants(tree.Renamed, "bob", tree.Change{Thread: &tree.Thread{ID: "t", FolderID: "p", Title: "u"}})
	must(x.MoveThread(ctx, tree.MoveThread{WorkspaceID: x.w, ThreadID: "t", Actor: "bob"}))(t)
	wants(tree.Moved, "bob", tree.Change{Thread: &tree.Thread{ID: "t", Title: "u"}})
	must(x.DeleteThread(ctx, tree.DeleteThread{WorkspaceID: x.w, ThreadID: "t", Actor: "bob"}))(t)
	wants(tree.Deleted, "bob", tree.Change{Thread: &tree.Thread{ID: "t", Title: "u"}})

	docs := func(action tree.Action, actor string, d tree.Doc) {
		s := d.Summary()
		wants(action, actor, tree.Change{Doc: &s})
	}
	docs(tree.DocSaved, "ann", x.save(t, "p", "one ✓"))
	docs(tree.DocSaved, "ann", x.save(t, "p", " "))
	docs(tree.DocRestored, "bob", x.restore(t, "p", "", 1, nil))
	docs(tree.DocArchived, "ann", x.archive(t, "p"))
	docs(tree.DocRestored, "bob", x.restore(t, "p", "", 1, nil))
	list, _ := x.since(t, from)
	told(t, list, want...)
	x.unchanged(t, x.newest(t))
}

// testChangesTogether: what one call does has one number.
func testChangesTogether(t *testing.T, x world) {
	x.folders(t, "top", "mid")
	x.thread(t, "mid", "t")
	doc := x.save(t, "mid", "x")
	before := x.newest(t)
	must(x.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: x.w, FolderID: "top", Recursive: true, Actor: "bob"}))(t)
	list, _ := x.since(t, before)
	at := time.Time{}
	for n, c := range list {
		if c.Seq != list[0].Seq || !c.At.Equal(list[0].At) {
			t.Errorf("change %d has the number %d and the time %v, want %d and %v", n, c.Seq, c.At, list[0].Seq, list[0].At)
		}
		at = c.At
	}
	archived := must(x.ArchivedDocs(t.Context(), tree.ArchivedQuery{Scope: x.scope(""), All: true}))(t)
	summary := archived[0].Summary
	if summary.ID != doc.ID || !summary.UpdatedAt.Equal(at) {
		t.Errorf("archived %+v, want %s at %v", summary, doc.ID, at)
	}
	slices.SortFunc(list, func(a, b tree.Change) int { return cmp.Compare(changeName(a), changeName(b)) })
	told(
		t, list,
		tree.Change{WorkspaceID: x.w, Actor: "bob", Action: tree.DocArchived, Doc: &summary},
		tree.Change{WorkspaceID: x.w, Actor: "bob", Action: tree.Deleted, Folder: &tree.Folder{ID: "mid", ParentID: "top", Name: "mid"}},
		tree.Change{WorkspaceID: x.w, Actor: "bob", Action: tree.Deleted, Folder: &tree.Folder{ID: "top", Name: "top"}},
		tree.Change{WorkspaceID: x.w, Actor: "bob", Action: tree.Moved, Thread: &tree.Thread{ID: "t", Title: "t"}},
	)
}

// changeName orders the changes of one transaction.
func changeName(c tree.Change) string {
	switch {
	case c.Workspace != nil:
		return "workspace " + c.Workspace.ID
	case c.Folder != nil:
		return "folder " + c.Folder.ID
	case c.Thread != nil:
		return "thread " + c.Thread.ID
	case c.Doc != nil:
		return "doc " + c.Doc.ID
	default:
		return ""
	}
}

// testChangesInParts: whatever the limit, the parts are the whole, in order, and
// no transaction is cut.
func testChangesInParts(t *testing.T, x world) {
	for _, id := range []string{"a", "b"} {
		x.folders(t, id, id+"1", id+"2")
		x.save(t, tree.FolderID(id+"1"), "x")
		x.thread(t, tree.FolderID(id+"2"), "t"+id)
		must(x.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: x.w, FolderID: id, Recursive: true}))(t)
	}
	whole, end := x.since(t, 0)
	for limit := 1; limit <= len(whole)+1; limit++ {
		var parts []tree.Change
		var after tree.Seq
		for more := true; more; {
			got := must(x.Changes(t.Context(), after, limit))(t)
			list := got.List
			switch {
			case got.Gap || len(list) == 0 && got.More || got.Next < after:
				t.Fatalf("limit %d, behind %d: %+v", limit, after, got)
			case len(list) > limit && list[0].Seq != list[len(list)-1].Seq:
				t.Errorf("limit %d: %d changes of several transactions", limit, len(list))
			case len(list) > 0 && got.Next < list[len(list)-1].Seq:
				t.Errorf("limit %d: the next place is %d, before the last change", limit, got.Next)
			case got.More != (got.Next < whole[len(whole)-1].Seq):
				t.Errorf("limit %d: at %d of %d there is more: %t", limit, got.Next, end, got.More)
			}
			parts, after, more = append(parts, list...), got.Next, got.More
		}
		same(t, "parts", parts, whole)
	}
	if got := must(x.Changes(t.Context(), 0, -1))(t); len(got.List) != len(whole) {
		t.Errorf("%d changes without a limit, want %d", len(got.List), len(whole))
	}
}

// testNoChange: what changes nothing succeeds, and is not in the log.
func testNoChange(t *testing.T, x world) {
	ctx := t.Context()
	x.folders(t, "a", "b")
	x.thread(t, "b", "t")
	doc := x.save(t, "b", "x")
	before := x.newest(t)
	must(x.RenameWorkspace(ctx, tree.RenameWorkspace{WorkspaceID: x.w, Name: "Work"}))(t)
	must(x.RenameFolder(ctx, tree.RenameFolder{WorkspaceID: x.w, FolderID: "b", Name: "b"}))(t)
	x.moveFolder(t, "b", "a")
	must(x.RenameThread(ctx, tree.RenameThread{WorkspaceID: x.w, ThreadID: "t", Title: "t"}))(t)
	x.moveThread(t, "t", "b")
	must(x.Save(ctx, tree.Save{Scope: x.scope("b"), Content: "x", ExpectedVersion: &doc.Version}))(t)
	must(x.Archive(ctx, tree.ArchiveDoc{Scope: x.scope("a")}))(t)
	must(x.Resolve(ctx, tree.ThreadRef{WorkspaceID: x.w, ThreadID: "t"}))(t)
	x.view(t, "b")
	x.all(t)
	x.unchanged(t, before)
}

// testGap: places that the log does not know, or not any more.
func testGap(t *testing.T, x world) {
	x.folder(t, "", "f")
	newest := x.newest(t)
	gap := func(after tree.Seq) {
		t.Helper()
		got := must(x.Changes(t.Context(), after, 1))(t)
		if !got.Gap || len(got.List) > 0 || got.More || got.Next < newest || got.Next >= newest+1_000_000 {
			t.Errorf("changes behind %d: %+v, want a gap up to %d", after, got, newest)
		}
	}
	gap(newest + 1_000_000)
	gap(-1)
	if n := must(x.Thin(t.Context(), time.Now().Add(tree.ChangesAge-time.Hour)))(t); n != 0 {
		t.Errorf("%d revisions were taken, want none", n)
	}
	if list, _ := x.since(t, 0); len(list) != 2 {
		t.Errorf("%d changes within their age, want 2", len(list))
	}
	must(x.Thin(t.Context(), time.Now().Add(tree.ChangesAge+time.Hour)))(t)
	gap(0)
	gap(newest - 1)
	x.unchanged(t, newest)
	x.folder(t, "", "g")
	list, _ := x.since(t, newest)
	told(t, list, tree.Change{WorkspaceID: x.w, Action: tree.Created, Folder: &tree.Folder{ID: "g", Name: "g"}})
	gap(0)
}

// testListen: it wakes once it listens, and after each change; its context ends it.
func testListen(t *testing.T, x world) {
	ctx, cancel := context.WithCancel(t.Context())
	woken := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- x.Listen(ctx, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	after := x.newest(t)
	wait := func(what string) {
		t.Helper()
		select {
		case <-woken:
		case err := <-ended:
			t.Fatalf("%s: it listens no more: %v", what, err)
		case <-time.After(listenPatience):
			t.Fatalf("%s: not woken", what)
		}
	}
	wait("at first")
	for _, id := range []string{"a", "b", "c"} {
		x.folder(t, "", id)
		// Being woken without a change is allowed, and so is being late.
		for list := []tree.Change(nil); len(list) == 0; list, after = x.since(t, after) {
			wait("after " + id)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v, want the context's error", err)
		}
	case <-time.After(listenPatience):
		t.Fatal("it listens although its context has ended")
	}
}
