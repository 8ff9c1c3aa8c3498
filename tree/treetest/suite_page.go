package treetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/tree"
)

// compareIDs is the order of ids: by their bytes, in no language.
func compareIDs[S ~string](a, b S) int { return strings.Compare(string(a), string(b)) }

// shape is a page in one line: folders, threads, and the scopes of documents.
func shape(page tree.Page) string {
	var folders, threads, docs []string
	for _, f := range page.Folders {
		folders = append(folders, f.ID)
	}
	for _, t := range page.Threads {
		threads = append(threads, t.ID)
	}
	for _, d := range page.AgentsDocs {
		docs = append(docs, "/"+string(d.FolderID))
	}
	slices.Sort(docs)
	return fmt.Sprint(folders, threads, docs)
}

// testTree: what a tree is made of; lists are never nil, documents have no text,
// drafts are shown and archived ones are not.
func testTree(t *testing.T, x world) {
	empty := must(x.Tree(t.Context(), tree.Query{Scope: x.scope("")}))(t)
	same(t, "empty", empty, tree.Page{Folders: []tree.Folder{}, Threads: []tree.Thread{}, AgentsDocs: []tree.Summary{}})

	x.folders(t, "a", "b", "c")
	x.thread(t, "", "t0")
	x.thread(t, "b", "t2")
	root := x.save(t, "", "Wurzel ✓")
	x.save(t, "a", "x")
	x.archive(t, "a")
	draft := x.save(t, "b", "")
	got := x.all(t)
	want := tree.Page{
		Folders:    []tree.Folder{{ID: "a", Name: "a"}, {ID: "b", ParentID: "a", Name: "b"}, {ID: "c", ParentID: "b", Name: "c"}},
		Threads:    []tree.Thread{{ID: "t0", Title: "t0"}, {ID: "t2", FolderID: "b", Title: "t2"}},
		AgentsDocs: []tree.Summary{root.Summary(), draft.Summary()},
	}
	slices.SortFunc(want.AgentsDocs, func(a, b tree.Summary) int { return compareIDs(a.ID, b.ID) })
	same(t, "tree", got, want)
	for _, d := range got.AgentsDocs {
		utc(t, d.ID, d.UpdatedAt)
		if d.ID == root.ID && d.Chars != len([]rune("Wurzel ✓")) {
			t.Errorf("%d characters, want those of the text", d.Chars)
		}
	}
}

// testTreeDepth: how deep it goes, from where, and whether there are threads.
func testTreeDepth(t *testing.T, x world) {
	x.folders(t, "a", "b", "c")
	x.folder(t, "", "z")
	for _, place := range []tree.FolderID{"", "a", "b", "c"} {
		x.thread(t, place, "t"+string(place))
		x.save(t, place, "x")
	}
	for _, test := range []struct {
		place   tree.FolderID
		depth   int
		threads tree.Threads
		want    string
	}{
		{"", 0, "", "[a b c z] [t ta tb tc] [/ /a /b /c]"},
		{"", 0, tree.AllThreads, "[a b c z] [t ta tb tc] [/ /a /b /c]"},
		{"", 0, tree.NoThreads, "[a b c z] [] [/ /a /b /c]"},
		{"", 1, "", "[a z] [t] [/ /a]"},
		{"", 2, "", "[a b z] [t ta] [/ /a /b]"},
		{"", 3, "", "[a b c z] [t ta tb] [/ /a /b /c]"},
		{"", 4, "", "[a b c z] [t ta tb tc] [/ /a /b /c]"},
		{"", 1000, "", "[a b c z] [t ta tb tc] [/ /a /b /c]"},
		{"", 2, tree.NoThreads, "[a b z] [] [/ /a /b]"},
		{"a", 0, "", "[b c] [ta tb tc] [/a /b /c]"},
		{"a", 1, "", "[b] [ta] [/a /b]"},
		{"b", 1, tree.NoThreads, "[c] [] [/b /c]"},
		{"c", 0, "", "[] [tc] [/c]"},
		{"z", 0, "", "[] [] []"},
	} {
		page := must(x.Tree(t.Context(), tree.Query{Scope: x.scope(test.place), Depth: test.depth, Threads: test.threads}))(t)
		if got := shape(page); got != test.want || page.NextCursor != nil {
			t.Errorf("tree of %q, depth %d, threads %q: %s, want %s", test.place, test.depth, test.threads, got, test.want)
		}
	}
}

// testTreeOrder: folders and threads are in the order of their ids' bytes, wherever
// they are and whenever they were made.
func testTreeOrder(t *testing.T, x world) {
	ids := []string{"b", "B", "a_", "a-", "a", "aa", "A.", "_", "-", "9", "10", "Z"}
	place := tree.FolderID("")
	for _, id := range ids {
		x.thread(t, place, id)
		place = x.folder(t, place, id)
	}
	slices.Sort(ids)
	page := x.all(t)
	for n, id := range ids {
		if page.Folders[n].ID != id || page.Threads[n].ID != id {
			t.Fatalf("order %s, want %v", shape(page), ids)
		}
	}
}

// testTreePages: a tree of more than MaxPage comes in pages, each folder and thread
// once and in order.
func testTreePages(t *testing.T, x world) {
	if testing.Short() {
		t.Skip("makes more than 10,000 threads")
	}
	const folders, threads = 50, tree.MaxPage
	for n := range folders {
		x.save(t, x.folder(t, "", fmt.Sprintf("f%02d", n)), "x")
	}
	x.save(t, "", "root's")
	const workers = 50
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for n := worker; n < threads; n += workers {
				p := tree.CreateThread{WorkspaceID: x.w, FolderID: "f07", ID: fmt.Sprintf("t%05d", n), Title: "t"}
				if _, err := x.CreateThread(t.Context(), p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	x.wantPages(t, tree.Query{Scope: x.scope("")}, folders, threads, folders+1)
	x.wantPages(t, tree.Query{Scope: x.scope("f07")}, 0, threads, 1)
}

// wantPages reads all pages of a query and counts what is on them.
func (x world) wantPages(t *testing.T, q tree.Query, folders, threads, docs int) {
	t.Helper()
	var got tree.Page
	for pages := 1; ; pages++ {
		page := must(x.Tree(t.Context(), q))(t)
		if page.Folders == nil || page.Threads == nil || page.AgentsDocs == nil {
			t.Fatal("a list of a page is nil")
		}
		if n := len(page.Folders) + len(page.Threads); n > tree.MaxPage || pages > 100 {
			t.Fatalf("page %d has %d folders and threads", pages, n)
		}
		got.Folders = append(got.Folders, page.Folders...)
		got.Threads = append(got.Threads, page.Threads...)
		got.AgentsDocs = append(got.AgentsDocs, page.AgentsDocs...)
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	slices.SortFunc(got.AgentsDocs, func(a, b tree.Summary) int { return compareIDs(a.ID, b.ID) })
	once := slices.CompactFunc(slices.Clone(got.AgentsDocs), func(a, b tree.Summary) bool { return a.ID == b.ID })
	if len(got.Folders) != folders || len(got.Threads) != threads || len(once) != docs || len(got.AgentsDocs) != docs {
		t.Errorf("%d folders, %d threads, %d documents; want %d, %d, %d", len(got.Folders), len(got.Threads), len(got.AgentsDocs), folders, threads, docs)
	}
	sorted := slices.IsSortedFunc(got.Folders, func(a, b tree.Folder) int { return compareIDs(a.ID, b.ID) }) &&
		slices.IsSortedFunc(got.Threads, func(a, b tree.Thread) int { return compareIDs(a.ID, b.ID) })
	if !sorted {
		t.Error("pages are not in the order of ids")
	}
}
