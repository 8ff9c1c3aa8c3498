package treetest

import (
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/tree"
)

func (x world) workspaces(t *testing.T) []tree.Workspace {
	t.Helper()
	return must(x.Workspaces(t.Context()))(t)
}

// testWorkspaces: made, listed by the bytes of their ids, renamed.
func testWorkspaces(t *testing.T, x world) {
	want := x.workspaces(t)
	for _, id := range []string{"b", "B", "a.", "a-", "_", "1"} {
		w := tree.Workspace{ID: id, Name: "Wörk 工作 " + id}
		same(t, "created", must(x.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: id, Name: w.Name}))(t), w)
		want = append(want, w)
	}
	made := must(x.CreateWorkspace(t.Context(), tree.CreateWorkspace{Name: "Work"}))(t)
	if err := tree.CheckID("id", made.ID); err != nil || made.Name != "Work" {
		t.Errorf("made %+v: %v", made, err)
	}
	want = append(want, made)
	slices.SortFunc(want, func(a, b tree.Workspace) int { return compareIDs(a.ID, b.ID) })
	same(t, "listed", x.workspaces(t), want)

	renamed := must(x.RenameWorkspace(t.Context(), tree.RenameWorkspace{WorkspaceID: "b", Name: "Play"}))(t)
	same(t, "renamed", renamed, tree.Workspace{ID: "b", Name: "Play"})
	want[slices.IndexFunc(want, func(w tree.Workspace) bool { return w.ID == "b" })].Name = "Play"
	same(t, "listed then", x.workspaces(t), want)
}

// testDeleteWorkspace: one with something in it needs recursive; then everything
// in it is out of reach, and its id is not given again.
func testDeleteWorkspace(t *testing.T, x world) {
	for name, fill := range map[string]func(x world){
		"folder": func(x world) { x.folder(t, "", "f") },
		"thread": func(x world) { x.thread(t, "", "t") },
		"doc":    func(x world) { x.save(t, "", "x") },
		"draft":  func(x world) { x.save(t, "", " ") },
	} {
		w := must(x.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: name, Name: name}))(t)
		fill(world{x.Store, w.ID})
		x.refuseAll(t, tree.CodeInvalid, []call{
			erring(name, tree.Store.DeleteWorkspace, tree.DeleteWorkspace{WorkspaceID: w.ID}),
		})
		same(t, "deleted", must(x.DeleteWorkspace(t.Context(), tree.DeleteWorkspace{WorkspaceID: w.ID, Recursive: true}))(t), w)
		x.refuseAll(t, tree.CodeNotFound, workspaceCalls(w.ID))
		x.refuseAll(t, tree.CodeNotFound, callsIn(w.ID, "f", "t"))
		x.refuseAll(t, tree.CodeInvalid, []call{
			erring("again", tree.Store.CreateWorkspace, tree.CreateWorkspace{ID: w.ID, Name: w.Name}),
		})
	}
	x.folder(t, "", "f") // was another's
	x.archiveAndEmpty(t)
	must(x.DeleteWorkspace(t.Context(), tree.DeleteWorkspace{WorkspaceID: x.w}))(t)
	if list := x.workspaces(t); len(list) != 0 {
		t.Errorf("workspaces %+v, want none", list)
	}
}

// archiveAndEmpty leaves nothing in a workspace but what is put away.
func (x world) archiveAndEmpty(t *testing.T) {
	t.Helper()
	x.save(t, "", "x")
	x.archive(t, "")
	x.thread(t, "", "t")
	must(x.DeleteThread(t.Context(), tree.DeleteThread{WorkspaceID: x.w, ThreadID: "t"}))(t)
	must(x.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: x.w, FolderID: "f"}))(t)
}

// testIdempotent: to create the same again gives what is there, and an id that is
// or was something else's is refused.
func testIdempotent(t *testing.T, x world) {
	ctx := t.Context()
	workspace := tree.CreateWorkspace{ID: "same", Name: "n"}
	folder := tree.CreateFolder{WorkspaceID: x.w, ParentID: x.folder(t, "", "p"), ID: "same", Name: "n"}
	thread := tree.CreateThread{WorkspaceID: x.w, FolderID: "p", ID: "same", Title: "n"}
	must(x.CreateWorkspace(ctx, workspace))(t)
	must(x.CreateFolder(ctx, folder))(t)
	must(x.CreateThread(ctx, thread))(t)

	before := x.newest(t)
	workspace.Actor, folder.Actor, thread.Actor = "bob", "bob", "bob"
	same(t, "workspace", must(x.CreateWorkspace(ctx, workspace))(t), tree.Workspace{ID: "same", Name: "n"})
	same(t, "folder", must(x.CreateFolder(ctx, folder))(t), tree.Folder{ID: "same", ParentID: "p", Name: "n"})
	same(t, "thread", must(x.CreateThread(ctx, thread))(t), tree.Thread{ID: "same", FolderID: "p", Title: "n"})
	x.unchanged(t, before)

	again := []call{
		erring("workspace", tree.Store.CreateWorkspace, workspace),
		erring("folder", tree.Store.CreateFolder, folder),
		erring("thread", tree.Store.CreateThread, thread),
	}
	x.refuseAll(t, tree.CodeInvalid, []call{
		erring("workspace of another name", tree.Store.CreateWorkspace, tree.CreateWorkspace{ID: "same", Name: "m"}),
		erring("folder of another name", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: x.w, ParentID: "p", ID: "same", Name: "m"}),
		erring("folder elsewhere", tree.Store.CreateFolder, tree.CreateFolder{WorkspaceID: x.w, ID: "same", Name: "n"}),
		erring("thread of another title", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: x.w, FolderID: "p", ID: "same", Title: "m"}),
		erring("thread elsewhere", tree.Store.CreateThread, tree.CreateThread{WorkspaceID: x.w, ID: "same", Title: "n"}),
	})
	other := x.other(t)
	other.folder(t, "", "same")
	other.thread(t, "", "same")

	must(x.RenameWorkspace(ctx, tree.RenameWorkspace{WorkspaceID: "same", Name: "m"}))(t)
	must(x.RenameFolder(ctx, tree.RenameFolder{WorkspaceID: x.w, FolderID: "same", Name: "m"}))(t)
	must(x.RenameThread(ctx, tree.RenameThread{WorkspaceID: x.w, ThreadID: "same", Title: "m"}))(t)
	x.refuseAll(t, tree.CodeInvalid, again)
	folder.Name, thread.Title = "m", "m"
	must(x.CreateFolder(ctx, folder))(t)
	must(x.CreateThread(ctx, thread))(t)

	must(x.DeleteWorkspace(ctx, tree.DeleteWorkspace{WorkspaceID: "same"}))(t)
	must(x.DeleteFolder(ctx, tree.DeleteFolder{WorkspaceID: x.w, FolderID: "same"}))(t)
	must(x.DeleteThread(ctx, tree.DeleteThread{WorkspaceID: x.w, ThreadID: "same"}))(t)
	workspace.Name = "m"
	x.refuseAll(t, tree.CodeInvalid, []call{
		erring("deleted workspace", tree.Store.CreateWorkspace, workspace),
		erring("deleted folder", tree.Store.CreateFolder, folder),
		erring("deleted thread", tree.Store.CreateThread, thread),
	})
}
