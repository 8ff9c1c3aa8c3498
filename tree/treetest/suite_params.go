package treetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/tree"
)

// call is a call of a store whose answer is not looked at.
type call struct {
	name string
	do   func(ctx context.Context, s tree.Store) error
}

// callsIn are calls of all methods that take a workspace, about its folder and
// thread. With a folder that is there they are sensible, so that what is refused
// is refused for the ids.
func callsIn(w, folder, thread string) []call {
	id := tree.FolderID(folder)
	scope := tree.Scope{WorkspaceID: w, FolderID: id}
	return append(docCalls(scope), []call{
		erring("rename folder", tree.Store.RenameFolder, tree.RenameFolder{WorkspaceID: w, FolderID: folder, Name: "n"}),
		erring("move folder", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: w, FolderID: folder}),
		erring("delete folder", tree.Store.DeleteFolder, tree.DeleteFolder{WorkspaceID: w, FolderID: folder, Recursive: true}),
		erring("create folder", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: w, ParentID: id, Name: "n"}),
		erring("create thread", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: w, FolderID: id, Title: "t"}),
		erring("rename thread", tree.Store.RenameThread, tree.RenameThread{WorkspaceID: w, ThreadID: thread, Title: "t"}),
		erring("move thread", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: w, ThreadID: thread}),
		erring("delete thread", tree.Store.DeleteThread, tree.DeleteThread{WorkspaceID: w, ThreadID: thread}),
	}...)
}

// docCalls are calls of all methods that take a scope.
func docCalls(scope tree.Scope) []call {
	return []call{
		erring("tree", tree.Store.Tree, tree.Query{Scope: scope}),
		erring("doc", tree.Store.Doc, scope),
		erring("save", tree.Store.Save, tree.Save{Scope: scope, Content: "x"}),
		erring("archive", tree.Store.Archive, tree.ArchiveDoc{Scope: scope}),
		erring("restore", tree.Store.Restore, tree.RestoreDoc{Scope: scope, Version: 1}),
		erring("revisions", tree.Store.Revisions, tree.RevisionQuery{Scope: scope}),
		erring("archived", tree.Store.ArchivedDocs, tree.ArchivedQuery{Scope: scope}),
		erring("affected", tree.Store.Affected, scope),
	}
}

// workspaceCalls are calls of all methods that need no more than a workspace.
func workspaceCalls(w string) []call {
	return append(docCalls(tree.Scope{WorkspaceID: w}), []call{
		erring("rename workspace", tree.Store.RenameWorkspace, tree.RenameWorkspace{WorkspaceID: w, Name: "n"}),
		erring("delete workspace", tree.Store.DeleteWorkspace, tree.DeleteWorkspace{WorkspaceID: w, Recursive: true}),
		erring("create folder", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: w, Name: "n"}),
		erring("create thread", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: w, Title: "t"}),
		erring("resolve", tree.Store.Resolve, tree.ThreadRef{WorkspaceID: w, ThreadID: "t"}),
		erring("all archived", tree.Store.ArchivedDocs, tree.ArchivedQuery{Scope: tree.Scope{WorkspaceID: w}, All: true}),
	}...)
}

// erring makes a call of a method.
func erring[P, R any](name string, method func(tree.Store, context.Context, P) (R, error), p P) call {
	return call{name, func(ctx context.Context, s tree.Store) error {
		_, err := method(s, ctx, p)
		return err
	}}
}

// refuseAll expects all calls to be refused, and to change nothing.
func (x world) refuseAll(t *testing.T, code tree.Code, calls []call) {
	t.Helper()
	before := x.newest(t)
	for _, c := range calls {
		if err := c.do(t.Context(), x.Store); !tree.HasCode(err, code) {
			t.Errorf("%s: error %v (%s), want the code %s", c.name, err, codeOf(err), code)
		}
	}
	x.unchanged(t, before)
}

// testInvalid: parameters that make no sense are refused as such by all methods.
func testInvalid(t *testing.T, x world) {
	x.folder(t, "", "f")
	x.thread(t, "", "t")
	for _, id := range []string{"a b", "ü", "a/b", "\x00", "\xff", strings.Repeat("a", tree.MaxID+1)} {
		x.refuseAll(t, tree.CodeInvalid, callsIn(x.w, id, id))
		x.refuseAll(t, tree.CodeInvalid, workspaceCalls(id))
		x.refuseAll(t, tree.CodeInvalid, x.callsWithID(id))
	}
	x.refuseAll(t, tree.CodeInvalid, workspaceCalls(""))
	for _, name := range []string{"", " \t", "a\nb", "a\x00b", "a\xffb", "\u2028", strings.Repeat("ü", tree.MaxName+1)} {
		x.refuseAll(t, tree.CodeInvalid, x.callsWithName(name))
		if name != "" {
			x.refuseAll(t, tree.CodeInvalid, x.callsBy(name))
		}
	}
	x.refuseAll(t, tree.CodeInvalid, x.senseless())
}

// callsWithID are calls with an id that callers choose or expect.
func (x world) callsWithID(id string) []call {
	w, scope := x.w, x.scope("f")
	return []call{
		erring("create workspace", tree.Store.CreateWorkspace, tree.CreateWorkspace{ID: id, Name: "n"}),
		erring("create folder", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: w, ID: id, Name: "n"}),
		erring("create thread", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: w, ID: id, Title: "n"}),
		erring("move folder", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: w, FolderID: "f", ParentID: tree.FolderID(id)}),
		erring("move thread", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: w, ThreadID: "t", FolderID: tree.FolderID(id)}),
		erring("save", tree.Store.Save, tree.Save{Scope: scope, Content: "x", ExpectedDocID: id}),
		erring("archive", tree.Store.Archive, tree.ArchiveDoc{Scope: scope, ExpectedDocID: id}),
		erring("restore", tree.Store.Restore, tree.RestoreDoc{Scope: scope, DocID: id, Version: 1}),
		erring("revisions", tree.Store.Revisions, tree.RevisionQuery{Scope: scope, DocID: id}),
		erring("resolve", tree.Store.Resolve, tree.ThreadRef{WorkspaceID: w, ThreadID: id}),
	}
}

// callsWithName are calls with a name or title.
func (x world) callsWithName(name string) []call {
	return []call{
		erring("create workspace", tree.Store.CreateWorkspace, tree.CreateWorkspace{Name: name}),
		erring("rename workspace", tree.Store.RenameWorkspace, tree.RenameWorkspace{WorkspaceID: x.w, Name: name}),
		erring("create folder", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: x.w, Name: name}),
		erring("rename folder", tree.Store.RenameFolder, tree.RenameFolder{WorkspaceID: x.w, FolderID: "f", Name: name}),
		erring("create thread", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: x.w, Title: name}),
		erring("rename thread", tree.Store.RenameThread, tree.RenameThread{WorkspaceID: x.w, ThreadID: "t", Title: name}),
	}
}

// callsBy are sensible calls of all methods that take an actor.
func (x world) callsBy(actor string) []call {
	w, scope := x.w, x.scope("f")
	return []call{
		erring("create workspace", tree.Store.CreateWorkspace, tree.CreateWorkspace{Name: "n", Actor: actor}),
		erring("rename workspace", tree.Store.RenameWorkspace, tree.RenameWorkspace{WorkspaceID: w, Name: "n", Actor: actor}),
		erring("delete workspace", tree.Store.DeleteWorkspace, tree.DeleteWorkspace{WorkspaceID: w, Recursive: true, Actor: actor}),
		erring("create folder", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: w, Name: "n", Actor: actor}),
		erring("rename folder", tree.Store.RenameFolder, tree.RenameFolder{WorkspaceID: w, FolderID: "f", Name: "n", Actor: actor}),
		erring("move folder", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: w, FolderID: "f", Actor: actor}),
		erring("delete folder", tree.Store.DeleteFolder, tree.DeleteFolder{WorkspaceID: w, FolderID: "f", Actor: actor}),
		erring("create thread", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: w, Title: "t", Actor: actor}),
		erring("rename thread", tree.Store.RenameThread, tree.RenameThread{WorkspaceID: w, ThreadID: "t", Title: "n", Actor: actor}),
		erring("move thread", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: w, ThreadID: "t", FolderID: "f", Actor: actor}),
		erring("delete thread", tree.Store.DeleteThread, tree.DeleteThread{WorkspaceID: w, ThreadID: "t", Actor: actor}),
		erring("save", tree.Store.Save, tree.Save{Scope: scope, Content: "x", Actor: actor}),
		erring("archive", tree.Store.Archive, tree.ArchiveDoc{Scope: scope, Actor: actor}),
		erring("restore", tree.Store.Restore, tree.RestoreDoc{Scope: scope, Version: 1, Actor: actor}),
	}
}

// senseless are calls with numbers and words that mean nothing.
func (x world) senseless() []call {
	scope := x.scope("f")
	return []call{
		erring("empty folder", tree.Store.RenameFolder, tree.RenameFolder{WorkspaceID: x.w, Name: "n"}),
		erring("empty thread", tree.Store.RenameThread, tree.RenameThread{WorkspaceID: x.w, Title: "n"}),
		erring("resolve no thread", tree.Store.Resolve, tree.ThreadRef{WorkspaceID: x.w}),
		erring("unknown reason", tree.Store.Save, tree.Save{Scope: scope, Content: "x", SaveReason: "other"}),
		erring("reason of archiving", tree.Store.Save, tree.Save{Scope: scope, Content: "x", SaveReason: tree.Archive}),
		erring("reason of restoring", tree.Store.Save, tree.Save{Scope: scope, Content: "x", SaveReason: tree.Restore}),
		erring("autosave on nothing said", tree.Store.Save, tree.Save{Scope: scope, Content: "x", SaveReason: tree.Autosave}),
		erring("restore version 0", tree.Store.Restore, tree.RestoreDoc{Scope: scope}),
		erring("restore version -1", tree.Store.Restore, tree.RestoreDoc{Scope: scope, Version: -1}),
		erring("limit -1", tree.Store.Revisions, tree.RevisionQuery{Scope: scope, Limit: -1}),
		erring("limit 1001", tree.Store.Revisions, tree.RevisionQuery{Scope: scope, Limit: tree.MaxLimit + 1}),
		erring("before -1", tree.Store.Revisions, tree.RevisionQuery{Scope: scope, BeforeVersion: -1}),
		erring("archived, limit -1", tree.Store.ArchivedDocs, tree.ArchivedQuery{Scope: scope, Limit: -1}),
		erring("archived, limit 1001", tree.Store.ArchivedDocs, tree.ArchivedQuery{Scope: scope, Limit: tree.MaxLimit + 1}),
		erring("depth -1", tree.Store.Tree, tree.Query{Scope: scope, Depth: -1}),
		erring("unknown threads", tree.Store.Tree, tree.Query{Scope: scope, Threads: "some"}),
		erring("no cursor of ours", tree.Store.Tree, tree.Query{Scope: scope, Cursor: "\x00?"}),
	}
}

// testNotThere: nothing is known by ids that were never given.
func testNotThere(t *testing.T, x world) {
	x.folder(t, "", "f")
	x.thread(t, "", "t")
	x.refuseAll(t, tree.CodeNotFound, callsIn(x.w, "nothing", "nothing"))
	x.refuseAll(t, tree.CodeNotFound, workspaceCalls("nothing"))
	x.refuseAll(t, tree.CodeNotFound, []call{
		erring("folder into nothing", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: x.w, FolderID: "f", ParentID: "nothing"}),
		erring("thread into nothing", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: x.w, ThreadID: "t", FolderID: "nothing"}),
		erring("folder that is a thread", tree.Store.Doc, x.scope("t")),
		erring("thread that is a folder", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: x.w, ThreadID: "f"}),
		erring("restore no document", tree.Store.Restore, tree.RestoreDoc{Scope: x.scope("f"), Version: 1}),
		erring("restore an unknown document", tree.Store.Restore, tree.RestoreDoc{Scope: x.scope("f"), DocID: "nothing", Version: 1}),
		erring("revisions of no document", tree.Store.Revisions, tree.RevisionQuery{Scope: x.scope("f")}),
		erring("revisions of an unknown document", tree.Store.Revisions, tree.RevisionQuery{Scope: x.scope("f"), DocID: "nothing"}),
	})
}

// testForeign: what is another workspace's is not there, whatever is asked.
func testForeign(t *testing.T, x world) {
	other := x.other(t)
	other.folders(t, "theirs", "below")
	other.thread(t, "theirs", "thread")
	doc := other.save(t, "theirs", "secret")
	old := other.save(t, "below", "old secret")
	other.archive(t, "below")
	mine := x.folder(t, "", "mine")
	x.thread(t, "", "t")
	x.save(t, mine, "x")

	x.refuseAll(t, tree.CodeNotFound, callsIn(x.w, "theirs", "thread"))
	x.refuseAll(t, tree.CodeNotFound, []call{
		erring("move under theirs", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: x.w, FolderID: "mine", ParentID: "theirs"}),
		erring("move theirs", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: x.w, FolderID: "theirs", ParentID: mine}),
		erring("thread into theirs", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: x.w, ThreadID: "t", FolderID: "theirs"}),
		erring("their revisions", tree.Store.Revisions, tree.RevisionQuery{Scope: x.scope(mine), DocID: doc.ID}),
		erring("their archived revisions", tree.Store.Revisions, tree.RevisionQuery{Scope: x.scope(mine), DocID: old.ID}),
		erring("restore theirs", tree.Store.Restore, tree.RestoreDoc{Scope: x.scope(mine), DocID: doc.ID, Version: 1}),
		erring("restore their archived", tree.Store.Restore, tree.RestoreDoc{Scope: x.scope(mine), DocID: old.ID, Version: 1}),
	})
	if got := must(x.Resolve(t.Context(), tree.ThreadRef{WorkspaceID: x.w, ThreadID: "thread"}))(t); got.Known || got.Effective != nil {
		t.Errorf("another workspace's thread resolves to %+v", got)
	}
	if list := must(x.ArchivedDocs(t.Context(), tree.ArchivedQuery{Scope: x.scope(""), All: true}))(t); len(list) != 0 {
		t.Errorf("another workspace's archived documents: %+v", list)
	}
	if page := x.all(t); len(page.Folders) != 1 || len(page.Threads) != 1 || len(page.AgentsDocs) != 1 {
		t.Errorf("the tree has another workspace's: %+v", page)
	}
}

// testDeleted: what was deleted is not there, whatever is asked.
func testDeleted(t *testing.T, x world) {
	x.folders(t, "top", "gone")
	x.thread(t, "", "t")
	x.save(t, "gone", "x")
	must(x.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: x.w, FolderID: "top", Recursive: true}))(t)
	must(x.DeleteThread(t.Context(), tree.DeleteThread{WorkspaceID: x.w, ThreadID: "t"}))(t)
	x.refuseAll(t, tree.CodeNotFound, callsIn(x.w, "gone", "t"))
	x.refuseAll(t, tree.CodeNotFound, callsIn(x.w, "top", "t"))
	if page := x.all(t); len(page.Folders)+len(page.Threads)+len(page.AgentsDocs) != 0 {
		t.Errorf("deleted, and still in the tree: %+v", page)
	}
}

// testFirstReason: of several reasons to refuse, the first in the order that
// tree.Store documents is told.
func testFirstReason(t *testing.T, x world) {
	x.folders(t, "a", "b")
	x.save(t, "a", "x")
	nothing := x.scope("nothing")
	x.refuseAll(t, tree.CodeInvalid, []call{
		erring("name before folder", tree.Store.RenameFolder, tree.RenameFolder{WorkspaceID: x.w, FolderID: "nothing", Name: " "}),
		erring("content before folder", tree.Store.Save, tree.Save{Scope: nothing, Content: "\x00"}),
		erring("reason before folder", tree.Store.Save, tree.Save{Scope: nothing, Content: "x", SaveReason: tree.Autosave}),
		erring("content before conflict", tree.Store.Save, tree.Save{Scope: x.scope("a"), Content: "\xff"}),
	})
	x.refuseAll(t, tree.CodeTooLarge, []call{
		erring("content before folder", tree.Store.Save, tree.Save{Scope: nothing, Content: strings.Repeat("x", tree.MaxChars+1)}),
		erring("content before conflict", tree.Store.Save, tree.Save{Scope: x.scope("a"), Content: strings.Repeat("x", tree.MaxChars+1)}),
	})
	x.refuseAll(t, tree.CodeNotFound, []call{
		erring("parent before id", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: x.w, ID: "a", ParentID: "nothing", Name: "n"}),
		erring("folder before id", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: x.w, ID: "a", FolderID: "nothing", Title: "n"}),
		erring("folder before conflict", tree.Store.Save, tree.Save{Scope: nothing, Content: "x", ExpectedVersion: new(int64(5))}),
		erring("revision before conflict", tree.Store.Restore, tree.RestoreDoc{Scope: x.scope("a"), Version: 9, ExpectedVersion: new(int64(5))}),
	})
}

// testContext: a call whose context has ended says so, and does nothing.
func testContext(t *testing.T, x world) {
	x.folder(t, "", "f")
	x.thread(t, "", "t")
	before := x.newest(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := append(callsIn(x.w, "f", "t"), workspaceCalls(x.w)...)
	for _, c := range calls {
		if err := c.do(ctx, x.Store); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want the context's", c.name, err)
		}
	}
	if err := x.Listen(ctx, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("listening: error %v, want the context's", err)
	}
	x.unchanged(t, before)
}
