package treestore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// TestMoveOfTooMany: a move looks at so many folders and no more while nobody else can
// change anything.
func TestMoveOfTooMany(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		storetest.Exec(t, dsn, fmt.Sprintf(`INSERT INTO tree_folders (workspace_id, id, parent_id, name, created_at, created_by)
			WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT 'w', CASE WHEN i = 0 THEN 'top' ELSE 'f' || i END, CASE WHEN i = 0 THEN NULL ELSE 'top' END, 'n', 0, '' FROM n`, treestore.MaxMove+1))
		analyze(t, dsn)
		if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", ID: "to", Name: "to"}); err != nil {
			t.Fatal(err)
		}
		move := tree.MoveFolder{WorkspaceID: "w", FolderID: "top", ParentID: "to"}
		_, err := s.MoveFolder(t.Context(), move)
		wantCode(t, err, tree.CodeInvalid)
		if _, err := s.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: "w", FolderID: "f1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.MoveFolder(t.Context(), move); err != nil {
			t.Error(err)
		}
	})
}

// TestDepth: folders are MaxDepth deep and not deeper, also below one that moves.
func TestDepth(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		create := func(parent tree.FolderID, id string) error {
			_, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", ParentID: parent, ID: id, Name: id})
			return err
		}
		move := func(id string, to tree.FolderID) error {
			_, err := s.MoveFolder(t.Context(), tree.MoveFolder{WorkspaceID: "w", FolderID: id, ParentID: to})
			return err
		}
		line := []tree.FolderID{""} // by depth
		for depth := 1; depth <= tree.MaxDepth; depth++ {
			id := fmt.Sprintf("d%02d", depth)
			if err := create(line[depth-1], id); err != nil {
				t.Fatal(err)
			}
			line = append(line, tree.FolderID(id))
		}
		wantCode(t, create(line[tree.MaxDepth], "deeper"), tree.CodeInvalid)
		// Three folders high, two branches: the longer one counts.
		for _, f := range [][2]string{{"", "high1"}, {"high1", "high2"}, {"high2", "high3"}, {"high1", "short"}} {
			if err := create(tree.FolderID(f[0]), f[1]); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, move("high1", line[tree.MaxDepth-2]), tree.CodeInvalid)
		wantCode(t, move("high1", line[tree.MaxDepth]), tree.CodeInvalid)
		if err := move("high1", line[tree.MaxDepth-3]); err != nil {
			t.Error(err)
		}
		if err := move("short", line[tree.MaxDepth-1]); err != nil {
			t.Error(err)
		}
	})
}

// TestPages: a tree of more than MaxPage comes in pages, each folder and thread once
// and in order.
func TestPages(t *testing.T) {
	t.Parallel()

	const folders = 50
	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		for n := range folders {
			id := fmt.Sprintf("f%02d", n)
			if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", ID: id, Name: id}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Save(t.Context(), tree.Save{Scope: scope(tree.FolderID(id)), Content: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Exec(t, dsn, fmt.Sprintf(`INSERT INTO tree_threads (workspace_id, id, folder_id, title, created_at, created_by)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT 'w', 't' || i, 'f07', 't', 0, '' FROM n`, tree.MaxPage))
		for place, want := range map[tree.FolderID][3]int{"": {folders, tree.MaxPage, folders}, "f07": {0, tree.MaxPage, 1}} {
			var folders, threads, docs []string
			q := tree.Query{Scope: scope(place)}
			for more := true; more; {
				page, err := s.Tree(t.Context(), q)
				if err != nil || len(page.Folders)+len(page.Threads) > tree.MaxPage {
					t.Fatalf("a page of %d and %d, %v", len(page.Folders), len(page.Threads), err)
				}
				for _, f := range page.Folders {
					folders = append(folders, f.ID)
				}
				for _, th := range page.Threads {
					threads = append(threads, th.ID)
				}
				for _, d := range page.AgentsDocs {
					docs = append(docs, d.ID)
				}
				if more = page.NextCursor != nil; more {
					q.Cursor = *page.NextCursor
				}
			}
			if !slices.IsSorted(folders) || !slices.IsSorted(threads) {
				t.Errorf("below %q: not in the order of ids", place)
			}
			slices.Sort(docs)
			if got := [3]int{len(slices.Compact(folders)), len(slices.Compact(threads)), len(slices.Compact(docs))}; got != want {
				t.Errorf("below %q: %d folders, threads and documents, want %d", place, got, want)
			}
		}
	})
}
