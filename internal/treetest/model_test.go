package treetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/tree"
)

// world is a model with a workspace "w", whose clock the test moves.
type world struct {
	*Model

	t     *testing.T
	clock *Clock
}

func newWorld(t *testing.T) world {
	t.Helper()
	clock := NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	x := world{NewModel(clock.Now), t, clock}
	if _, err := x.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: "w", Name: "W"}); err != nil {
		t.Fatal(err)
	}
	return x
}

func scope(place string) tree.Scope {
	return tree.Scope{WorkspaceID: "w", FolderID: tree.FolderID(place)}
}

// folders makes folders, each given as "id" or "parent/id".
func (x world) folders(paths ...string) {
	x.t.Helper()
	for _, path := range paths {
		parent, id, below := strings.Cut(path, "/")
		if !below {
			parent, id = "", path
		}
		if _, err := x.CreateFolder(x.t.Context(), tree.CreateFolder{WorkspaceID: "w", ParentID: tree.FolderID(parent), ID: id, Name: "the " + id}); err != nil {
			x.t.Fatal(err)
		}
	}
}

// save saves on what exists.
func (x world) save(place, content string, reason tree.SaveReason) tree.Doc {
	x.t.Helper()
	version := int64(0)
	if view, err := x.Doc(x.t.Context(), scope(place)); err != nil {
		x.t.Fatal(err)
	} else if view.Explicit != nil {
		version = view.Explicit.Version
	}
	got, err := x.Save(x.t.Context(), tree.Save{Scope: scope(place), Content: content, ExpectedVersion: &version, SaveReason: reason})
	if err != nil {
		x.t.Fatal(err)
	}
	return got.Doc
}

func (x world) archiveIn(place string) tree.Doc {
	x.t.Helper()
	got, err := x.Archive(x.t.Context(), tree.ArchiveDoc{Scope: scope(place)})
	if err != nil || got.Doc == nil {
		x.t.Fatalf("archiving: %+v, %v", got, err)
	}
	return *got.Doc
}

// TestEffective: the nearest active document above is in effect; drafts hide nothing.
func TestEffective(t *testing.T) {
	t.Parallel()

	x := newWorld(t)
	x.folders("a", "a/b", "b/c", "z")
	at := func(place string) string {
		view, err := x.Doc(t.Context(), scope(place))
		if err != nil || view.Effective == nil {
			return fmt.Sprint(err)
		}
		e := view.Effective
		return fmt.Sprintf("%s of %q %q inherited: %t", e.Doc.Content, e.SourceFolderID, e.SourcePath, e.Inherited)
	}
	var got []string
	look := func(place string) { got = append(got, place+": "+at(place)) }
	look("c")
	x.save("a", "A", "")
	look("")
	look("c")
	x.save("", "R", "")
	look("z")
	x.save("b", " \n", "")
	look("b")
	x.save("c", "C", "")
	look("c")
	if _, err := x.MoveFolder(t.Context(), tree.MoveFolder{WorkspaceID: "w", FolderID: "b", ParentID: "z"}); err != nil {
		t.Fatal(err)
	}
	look("c")
	x.archiveIn("c")
	look("c")
	want := []string{
		`c: <nil>`, `: <nil>`, `c: A of "a" ["the a"] inherited: true`, `z: R of "" [] inherited: true`, `b: A of "a" ["the a"] inherited: true`,
		`c: C of "c" ["the a" "the b" "the c"] inherited: false`, `c: C of "c" ["the z" "the b" "the c"] inherited: false`, `c: R of "" [] inherited: true`,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("in effect (-want +got):\n%s", diff)
	}
	affected := map[string]int{}
	for _, place := range []string{"", "a", "z", "c"} {
		n, err := x.Affected(t.Context(), scope(place))
		if err != nil {
			t.Fatal(err)
		}
		affected[place] = n
	}
	if diff := gocmp.Diff(map[string]int{"": 3, "a": 0, "z": 2, "c": 0}, affected); diff != "" {
		t.Errorf("affected (-want +got):\n%s", diff)
	}
}

// TestVersions: what is expected has to be what exists, and every version is kept.
func TestVersions(t *testing.T) {
	t.Parallel()

	x := newWorld(t)
	ctx := t.Context()
	x.folders("f")
	old := x.save("f", "one", "")
	archived := x.archiveIn("f")
	doc := x.save("f", "two", tree.Autosave)
	if old.ID == doc.ID || doc.Version != 1 || archived.Version != 2 {
		t.Errorf("documents %+v, %+v, %+v", old, archived, doc)
	}
	for _, p := range []tree.Save{
		{ExpectedVersion: new(int64(0))},
		{ExpectedVersion: new(int64(2))},
		{},
		{ExpectedVersion: new(int64(1)), ExpectedDocID: old.ID},
		{ExpectedVersion: new(int64(2)), Content: "two"},
	} {
		p.Scope = scope("f")
		_, err := x.Save(ctx, p)
		if c := refusalOf(err); c.Code != tree.CodeConflict || *c.Conflict.ActualVersion != 1 || *c.Conflict.ActualDocID != doc.ID {
			t.Errorf("saving %+v: %v", p, err)
		}
	}
	if got, err := x.Save(ctx, tree.Save{Scope: scope("f"), Content: "two", ExpectedVersion: new(int64(1))}); err != nil || !got.Unchanged {
		t.Errorf("the same text: %+v, %v", got, err)
	}
	restored, err := x.Restore(ctx, tree.RestoreDoc{Scope: scope("f"), DocID: old.ID, Version: 1})
	if err != nil || restored.ID != doc.ID || restored.Version != 2 || restored.Content != "one" {
		t.Errorf("restored into the live document: %+v, %v", restored, err)
	}
	x.archiveIn("f")
	if back, err := x.Restore(ctx, tree.RestoreDoc{Scope: scope("f"), Version: 1}); err != nil || back.ID != doc.ID || back.Version != 4 {
		t.Errorf("restored the last archived document: %+v, %v", back, err)
	}
	if _, err := x.Restore(ctx, tree.RestoreDoc{Scope: scope(""), DocID: old.ID, Version: 1}); !tree.HasCode(err, tree.CodeInvalid) {
		t.Errorf("restored elsewhere: %v", err)
	}
	list, err := x.Revisions(ctx, tree.RevisionQuery{Scope: scope(""), DocID: doc.ID, IncludeContent: true})
	var got []string
	for _, r := range list {
		got = append(got, fmt.Sprint(r.Version, " ", r.SaveReason, " ", *r.Content))
	}
	if diff := gocmp.Diff([]string{"4 restore two", "3 archive one", "2 restore one", "1 autosave two"}, got); diff != "" || err != nil {
		t.Errorf("revisions, %v (-want +got):\n%s", err, diff)
	}
}

// TestDeleteFolder: what is below goes too, documents are archived, and threads move
// to the parent; all as one transaction. Ids are not given again.
func TestDeleteFolder(t *testing.T) {
	t.Parallel()

	x := newWorld(t)
	ctx := t.Context()
	x.folders("p", "p/top", "top/mid")
	x.save("mid", "M", "")
	if _, err := x.CreateThread(ctx, tree.CreateThread{WorkspaceID: "w", FolderID: "mid", ID: "t", Title: "T"}); err != nil {
		t.Fatal(err)
	}
	before := x.seq
	remove := tree.DeleteFolder{WorkspaceID: "w", FolderID: "top"}
	if _, err := x.DeleteFolder(ctx, remove); !tree.HasCode(err, tree.CodeInvalid) {
		t.Errorf("not empty: %v", err)
	}
	remove.Recursive = true
	if _, err := x.DeleteFolder(ctx, remove); err != nil {
		t.Fatal(err)
	}
	page, err := x.Tree(ctx, tree.Query{Scope: scope("")})
	want := tree.Page{
		Folders: []tree.Folder{{ID: "p", Name: "the p"}}, Threads: []tree.Thread{{ID: "t", FolderID: "p", Title: "T"}}, AgentsDocs: []tree.Summary{},
	}
	if diff := gocmp.Diff(want, page); diff != "" || err != nil {
		t.Errorf("left, %v (-want +got):\n%s", err, diff)
	}
	changes, err := x.Changes(ctx, before, 1)
	if err != nil || len(changes.List) != 4 || changes.More || changes.List[0].Seq != changes.List[3].Seq {
		t.Errorf("changes %+v, %v", changes, err)
	}
	if _, err := x.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "w", ID: "top", Name: "the top", ParentID: "p"}); !tree.HasCode(err, tree.CodeInvalid) {
		t.Errorf("an id again: %v", err)
	}
	for _, move := range []tree.MoveFolder{{FolderID: "p", ParentID: "p"}, {FolderID: "p", ParentID: "q"}} {
		x.folders("p/" + "q" + strconv.Itoa(len(x.log)))
		move.WorkspaceID = "w"
		code := map[tree.FolderID]tree.Code{"p": tree.CodeCycle, "q": tree.CodeNotFound}[move.ParentID]
		if _, err := x.MoveFolder(ctx, move); !tree.HasCode(err, code) {
			t.Errorf("move %+v: %v", move, err)
		}
	}
}

// TestThin: of autosaves older than ThinAge the last of each step stays, and every
// other reason.
func TestThin(t *testing.T) {
	t.Parallel()

	const auto, manual = tree.Autosave, tree.Manual
	x := newWorld(t)
	start := x.clock.Now()
	var doc tree.Doc
	var want []int64
	for n, p := range []struct {
		at     time.Duration
		reason tree.SaveReason
		stays  bool
	}{
		{0, auto, false},
		{time.Minute, auto, false},
		{2 * time.Minute, manual, true},
		{9 * time.Minute, auto, true}, // the last autosave of its step, with a manual save behind it
		{9*time.Minute + 30*time.Second, manual, true},
		{10 * time.Minute, auto, true},
		{25 * time.Minute, auto, false},
		{29 * time.Minute, auto, true},
		{time.Hour, auto, false},
		{time.Hour + 4*time.Minute, auto, true}, // the last that is old
		{time.Hour + 5*time.Minute, auto, true}, // young by nothing
		{time.Hour + 6*time.Minute, auto, true},
	} {
		x.clock.Add(start.Add(p.at).Sub(x.clock.Now()))
		doc = x.save("", strconv.Itoa(n), p.reason)
		if p.stays {
			want = append(want, doc.Version)
		}
	}
	taken, err := x.Thin(t.Context(), start.Add(time.Hour+5*time.Minute+tree.ThinAge))
	if err != nil || taken != 4 {
		t.Errorf("%d revisions were removed, %v; want 4", taken, err)
	}
	list, err := x.Revisions(t.Context(), tree.RevisionQuery{Scope: scope("")})
	var got []int64
	for _, r := range slices.Backward(list) {
		got = append(got, r.Version)
	}
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("what stays, %v (-want +got):\n%s", err, diff)
	}
	if got, err := x.Changes(t.Context(), 0, 0); err != nil || !got.Gap || got.Next != x.seq {
		t.Errorf("the log: %+v, %v, want a gap", got, err)
	}
}
