package treetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/tree"
)

// Suite runs the conformance suite: what [tree.Store] and its parameters promise,
// a subtest each. Open makes an empty store of its own for a subtest, and closes it
// by t.Cleanup; it is called from subtests that run in parallel. With -short the
// subtest with more than [tree.MaxPage] threads is left out.
func Suite(t *testing.T, open func(t *testing.T) tree.Store) {
	t.Helper()
	runSuite(t, open, slices.Concat(paramTests(), placeTests(), docTests(), historyTests(), logTests(), manyTests()))
}

// suiteTest is one rule, or a few that belong together.
type suiteTest struct {
	name string
	run  func(t *testing.T, x world)
}

// paramTests are about workspaces, ids and what is refused whatever the tree holds.
func paramTests() []suiteTest {
	return []suiteTest{
		{"workspaces", testWorkspaces},
		{"delete workspace", testDeleteWorkspace},
		{"same again", testIdempotent},
		{"invalid", testInvalid},
		{"not there", testNotThere},
		{"another workspace's", testForeign},
		{"deleted", testDeleted},
		{"first reason", testFirstReason},
		{"context", testContext},
	}
}

// placeTests are about folders, threads and pages of the tree.
func placeTests() []suiteTest {
	return []suiteTest{
		{"folders", testFolders},
		{"cycles", testCycles},
		{"depth", testDepth},
		{"delete folder", testDeleteFolder},
		{"delete recursively", testDeleteRecursively},
		{"threads", testThreads},
		{"tree", testTree},
		{"tree depth", testTreeDepth},
		{"tree order", testTreeOrder},
		{"tree pages", testTreePages},
	}
}

// docTests are about saving, and what is in effect where.
func docTests() []suiteTest {
	return []suiteTest{
		{"save", testSave},
		{"unchanged", testUnchanged},
		{"normalised", testNormalised},
		{"limits", testLimits},
		{"drafts", testDrafts},
		{"conflicts", testConflicts},
		{"save again after archiving", testSaveAfterArchive},
		{"autosave", testAutosave},
		{"inheritance", testInheritance},
		{"resolve", testResolve},
		{"affected", testAffected},
	}
}

// historyTests are about versions: archived, restored, listed, thinned.
func historyTests() []suiteTest {
	return []suiteTest{
		{"archive", testArchive},
		{"archive conflicts", testArchiveConflicts},
		{"restore a live document", testRestoreLive},
		{"restore an archived document", testRestoreArchived},
		{"restore refused", testRestoreRefused},
		{"revisions", testRevisions},
		{"archived documents", testArchivedDocs},
		{"thin", testThinYoung},
	}
}

// logTests are about the log of changes and who listens to it.
func logTests() []suiteTest {
	return []suiteTest{
		{"changes", testChanges},
		{"changes of one transaction", testChangesTogether},
		{"changes in parts", testChangesInParts},
		{"no change", testNoChange},
		{"gap", testGap},
		{"listen", testListen},
	}
}

// manyTests have many callers at once.
func manyTests() []suiteTest {
	return []suiteTest{
		{"many on one document", testManyOnOne},
		{"many first saves", testManyFirst},
		{"many saves and archives", testManyArchive},
		{"many creates", testManyCreates},
		{"many moves", testManyMoves},
		{"many saves and deletes", testManyDeletes},
	}
}

// runSuite runs tests, each on a store with one workspace.
func runSuite(t *testing.T, open func(t *testing.T) tree.Store, tests []suiteTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			s := open(t)
			w := must(s.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: "w", Name: "Work"}))(t)
			test.run(t, world{s, w.ID})
		})
	}
}

// world is a store and a workspace in it.
type world struct {
	tree.Store

	w string
}

// must returns the value of a call that has to succeed: must(s.Doc(…))(t).
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused expects a call to be refused: refused(s.Doc(…))(t, code).
func refused[T any](_ T, err error) func(t *testing.T, code tree.Code) {
	return func(t *testing.T, code tree.Code) {
		t.Helper()
		if !tree.HasCode(err, code) {
			t.Errorf("error %v (%s), want the code %s", err, codeOf(err), code)
		}
	}
}

// same compares, times of resolution left out.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tree.Effective{}, "ResolvedAt")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// utc fails the test for a time that is not set, or in another zone.
func utc(t *testing.T, what string, times ...time.Time) {
	t.Helper()
	for _, at := range times {
		if at.IsZero() || at.Location() != time.UTC {
			t.Errorf("%s: the time %v, want one in UTC", what, at)
		}
	}
}

func (x world) scope(place tree.FolderID) tree.Scope {
	return tree.Scope{WorkspaceID: x.w, FolderID: place}
}

// other makes a second workspace.
func (x world) other(t *testing.T) world {
	t.Helper()
	w := must(x.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: "w2", Name: "Other"}))(t)
	return world{x.Store, w.ID}
}

// folder makes a folder whose name is its id.
func (x world) folder(t *testing.T, parent tree.FolderID, id string) tree.FolderID {
	t.Helper()
	f := must(x.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: x.w, ParentID: parent, ID: id, Name: id}))(t)
	return tree.FolderID(f.ID)
}

// folders makes a line of folders from the root down, each in the one before.
func (x world) folders(t *testing.T, ids ...string) {
	t.Helper()
	parent := tree.FolderID("")
	for _, id := range ids {
		parent = x.folder(t, parent, id)
	}
}

// thread makes a thread whose title is its id.
func (x world) thread(t *testing.T, place tree.FolderID, id string) {
	t.Helper()
	must(x.CreateThread(t.Context(), tree.CreateThread{WorkspaceID: x.w, FolderID: place, ID: id, Title: id}))(t)
}

// save saves a text on what is there.
func (x world) save(t *testing.T, place tree.FolderID, content string) tree.Doc {
	t.Helper()
	p := tree.Save{Scope: x.scope(place), Content: content, Actor: "ann"}
	if d := x.view(t, place).Explicit; d != nil {
		p.ExpectedVersion, p.ExpectedDocID = &d.Version, d.ID
	}
	return must(x.Save(t.Context(), p))(t).Doc
}

// archive archives what is there.
func (x world) archive(t *testing.T, place tree.FolderID) tree.Doc {
	t.Helper()
	got := must(x.Archive(t.Context(), tree.ArchiveDoc{Scope: x.scope(place), Actor: "ann"}))(t)
	if !got.Archived || got.Doc == nil {
		t.Fatalf("archiving: %+v, want a document", got)
	}
	return *got.Doc
}

// view is what a scope has, and what is in effect there.
func (x world) view(t *testing.T, place tree.FolderID) tree.View {
	t.Helper()
	return must(x.Doc(t.Context(), x.scope(place)))(t)
}

// revisions are those of a document with their texts, newest first.
func (x world) revisions(t *testing.T, doc string) []tree.Revision {
	t.Helper()
	return must(x.Revisions(t.Context(), tree.RevisionQuery{
		Scope: x.scope(""), DocID: doc, IncludeContent: true, Limit: tree.MaxLimit,
	}))(t)
}

// all is the whole tree below the root, of all pages.
func (x world) all(t *testing.T) tree.Page {
	t.Helper()
	return must(readTree(t.Context(), x.Store, x.w))(t)
}

// newest is the place behind all changes.
func (x world) newest(t *testing.T) tree.Seq {
	t.Helper()
	_, next := x.since(t, 0)
	return next
}

// since are the changes behind a place, and the place behind them.
func (x world) since(t *testing.T, after tree.Seq) ([]tree.Change, tree.Seq) {
	t.Helper()
	var list []tree.Change
	for {
		got := must(x.Changes(t.Context(), after, 0))(t)
		if got.Gap || got.Next < after {
			t.Fatalf("changes behind %d: %+v", after, got)
		}
		list = append(list, got.List...)
		after = got.Next
		if !got.More {
			return list, after
		}
	}
}

// unchanged fails the test if there is any change behind a place.
func (x world) unchanged(t *testing.T, after tree.Seq) {
	t.Helper()
	if list, _ := x.since(t, after); len(list) > 0 {
		t.Errorf("changes %+v, want none", list)
	}
}
