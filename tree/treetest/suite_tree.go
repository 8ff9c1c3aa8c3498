package treetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/tree"
)

func (x world) moveFolder(t *testing.T, id string, to tree.FolderID) tree.Folder {
	t.Helper()
	return must(x.MoveFolder(t.Context(), tree.MoveFolder{WorkspaceID: x.w, FolderID: id, ParentID: to}))(t)
}

func (x world) moveThread(t *testing.T, id string, to tree.FolderID) tree.Thread {
	t.Helper()
	return must(x.MoveThread(t.Context(), tree.MoveThread{WorkspaceID: x.w, ThreadID: id, FolderID: to}))(t)
}

// places are where folders or threads are, by their ids.
func places(page tree.Page) (folders, threads map[string]tree.FolderID) {
	folders, threads = map[string]tree.FolderID{}, map[string]tree.FolderID{}
	for _, f := range page.Folders {
		folders[f.ID] = f.ParentID
	}
	for _, t := range page.Threads {
		threads[t.ID] = t.FolderID
	}
	return folders, threads
}

// testFolders: made, renamed and moved; several may have one name.
func testFolders(t *testing.T, x world) {
	ctx := t.Context()
	made := must(x.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: x.w, Name: "Notes"}))(t)
	twin := must(x.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: x.w, Name: "Notes"}))(t)
	if tree.CheckID("id", made.ID) != nil || made.ID == twin.ID || made.Name != "Notes" || made.ParentID != "" {
		t.Errorf("made %+v and %+v", made, twin)
	}
	below := must(x.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: x.w, ParentID: tree.FolderID(made.ID), ID: "below", Name: "Below"}))(t)
	same(t, "below", below, tree.Folder{ID: "below", ParentID: tree.FolderID(made.ID), Name: "Below"})
	same(t, "moved", x.moveFolder(t, "below", tree.FolderID(twin.ID)), tree.Folder{ID: "below", ParentID: tree.FolderID(twin.ID), Name: "Below"})
	renamed := must(x.RenameFolder(ctx, tree.RenameFolder{WorkspaceID: x.w, FolderID: "below", Name: "Ünten"}))(t)
	same(t, "renamed", renamed, tree.Folder{ID: "below", ParentID: tree.FolderID(twin.ID), Name: "Ünten"})
	same(t, "moved to the root", x.moveFolder(t, "below", ""), tree.Folder{ID: "below", Name: "Ünten"})
	folders, _ := places(x.all(t))
	same(t, "tree", folders, map[string]tree.FolderID{made.ID: "", twin.ID: "", "below": ""})
}

// testThreads: made, retitled, moved and deleted.
func testThreads(t *testing.T, x world) {
	ctx := t.Context()
	x.folders(t, "a", "b")
	made := must(x.CreateThread(ctx, tree.CreateThread{WorkspaceID: x.w, FolderID: "a", Title: "Chat"}))(t)
	if tree.CheckID("id", made.ID) != nil || made.FolderID != "a" || made.Title != "Chat" {
		t.Errorf("made %+v", made)
	}
	made.FolderID = "b"
	same(t, "moved", x.moveThread(t, made.ID, "b"), made)
	made.Title = "Chät"
	same(t, "renamed", must(x.RenameThread(ctx, tree.RenameThread{WorkspaceID: x.w, ThreadID: made.ID, Title: "Chät"}))(t), made)
	same(t, "tree", x.all(t).Threads, []tree.Thread{made})
	made.FolderID = ""
	same(t, "moved to the root", x.moveThread(t, made.ID, ""), made)
	same(t, "deleted", must(x.DeleteThread(ctx, tree.DeleteThread{WorkspaceID: x.w, ThreadID: made.ID}))(t), made)
	if left := x.all(t).Threads; len(left) != 0 {
		t.Errorf("threads %+v, want none", left)
	}
}

// testCycles: no folder comes to lie in itself or below itself.
func testCycles(t *testing.T, x world) {
	x.folders(t, "a", "b", "c")
	x.folder(t, "", "d")
	move := func(id string, to tree.FolderID) call {
		return erring(fmt.Sprintf("%s into %s", id, to), tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: x.w, FolderID: id, ParentID: to})
	}
	x.refuseAll(t, tree.CodeCycle, []call{move("a", "a"), move("a", "b"), move("a", "c"), move("b", "c"), move("c", "c")})
	x.moveFolder(t, "a", "d")
	x.moveFolder(t, "c", "")
	x.moveFolder(t, "a", "c")
	x.refuseAll(t, tree.CodeCycle, []call{move("c", "a"), move("c", "b")})
	folders, _ := places(x.all(t))
	same(t, "tree", folders, map[string]tree.FolderID{"a": "c", "b": "a", "c": "", "d": ""})
}

// testDepth: folders are MaxDepth deep, and not deeper, also below one that moves.
func testDepth(t *testing.T, x world) {
	at := tree.FolderID("")
	line := make([]tree.FolderID, tree.MaxDepth+1) // by depth
	for depth := 1; depth <= tree.MaxDepth; depth++ {
		at = x.folder(t, at, fmt.Sprintf("d%02d", depth))
		line[depth] = at
	}
	x.save(t, "", "rule")
	if got := x.view(t, at).Effective; got == nil || len(got.SourcePath) != 0 || !got.Inherited {
		t.Errorf("at the deepest place %+v is in effect, want the root's", got)
	}
	x.refuseAll(t, tree.CodeInvalid, []call{
		erring("one deeper", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: x.w, ParentID: at, Name: "n"}),
	})
	// Three folders high, two branches: the longer one counts.
	x.folders(t, "high1", "high2", "high3")
	x.folder(t, "high1", "short")
	x.refuseAll(t, tree.CodeInvalid, []call{
		erring("too high", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: x.w, FolderID: "high1", ParentID: line[tree.MaxDepth-2]}),
		erring("far too high", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: x.w, FolderID: "high1", ParentID: at}),
	})
	x.moveFolder(t, "high1", line[tree.MaxDepth-3])
	x.moveFolder(t, "short", line[tree.MaxDepth-1])
}

// testDeleteFolder: a folder with anything in it needs recursive.
func testDeleteFolder(t *testing.T, x world) {
	ctx := t.Context()
	remove := tree.DeleteFolder{WorkspaceID: x.w, FolderID: "f", Actor: "ann"}
	x.folder(t, "", "f")
	x.folder(t, "f", "below")
	refuse := []call{erring("not empty", tree.Store.DeleteFolder, remove)}
	x.refuseAll(t, tree.CodeInvalid, refuse)
	x.moveFolder(t, "below", "")
	x.thread(t, "f", "t")
	x.refuseAll(t, tree.CodeInvalid, refuse)
	x.moveThread(t, "t", "")
	x.save(t, "f", "x")
	x.refuseAll(t, tree.CodeInvalid, refuse)
	x.save(t, "f", "")
	x.refuseAll(t, tree.CodeInvalid, refuse)
	x.archive(t, "f")
	same(t, "deleted", must(x.DeleteFolder(ctx, remove))(t), tree.Folder{ID: "f", Name: "f"})
	x.refuseAll(t, tree.CodeNotFound, refuse)
}

// testDeleteRecursively: the folders below go too, their documents are archived
// with a revision each, and all threads move to the deleted folder's parent.
func testDeleteRecursively(t *testing.T, x world) {
	x.folders(t, "parent", "top", "mid", "low")
	x.folder(t, "top", "beside")
	x.thread(t, "top", "t-top")
	x.thread(t, "low", "t-low")
	x.thread(t, "parent", "t-parent")
	x.save(t, "parent", "stays")
	x.save(t, "top", "old")
	docs := []tree.Doc{x.save(t, "top", "top's"), x.save(t, "low", "low's"), x.save(t, "beside", " \n")}

	was := must(x.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: x.w, FolderID: "top", Recursive: true, Actor: "bob"}))(t)
	same(t, "deleted", was, tree.Folder{ID: "top", ParentID: "parent", Name: "top"})
	page := x.all(t)
	folders, threads := places(page)
	same(t, "folders", folders, map[string]tree.FolderID{"parent": ""})
	same(t, "threads", threads, map[string]tree.FolderID{"t-top": "parent", "t-low": "parent", "t-parent": "parent"})
	if len(page.AgentsDocs) != 1 || page.AgentsDocs[0].FolderID != "parent" {
		t.Errorf("documents %+v, want the parent's", page.AgentsDocs)
	}
	got := must(x.Resolve(t.Context(), tree.ThreadRef{WorkspaceID: x.w, ThreadID: "t-low"}))(t)
	if got.Effective == nil || got.Effective.Doc.Content != "stays" {
		t.Errorf("the moved thread resolves to %+v, want the parent's", got)
	}
	list := must(x.ArchivedDocs(t.Context(), tree.ArchivedQuery{Scope: x.scope(""), All: true, IncludeContent: true}))(t)
	if len(list) != len(docs) {
		t.Fatalf("%d archived documents, want %d", len(list), len(docs))
	}
	for _, d := range docs {
		x.wantArchived(t, list, d)
	}
}

// wantArchived expects a live document to have been archived by bob, as a version
// and a revision.
func (x world) wantArchived(t *testing.T, list []tree.ArchivedDoc, was tree.Doc) {
	t.Helper()
	for _, got := range list {
		if got.ID != was.ID {
			continue
		}
		utc(t, was.ID, got.UpdatedAt, got.ArchivedAt)
		want := tree.ArchivedDoc{Summary: was.Summary(), ArchivedAt: got.ArchivedAt, ArchivedBy: "bob", Content: &was.Content}
		want.Status, want.UpdatedAt = tree.Archived, got.ArchivedAt
		want.Version++
		same(t, "archived", got, want)
		revision := x.revisions(t, was.ID)[0]
		same(t, "revision", revision, tree.Revision{
			DocID: was.ID, Version: want.Version, ContentSHA256: was.ContentSHA256, Chars: tree.Chars(was.Content),
			SavedAt: got.ArchivedAt, SavedBy: "bob", SaveReason: tree.Archive, Content: &was.Content,
		})
		return
	}
	t.Errorf("the document of %q is not archived: %s", was.FolderID, cmp.Diff(nil, list))
}
