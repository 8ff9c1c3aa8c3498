package treestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// TestLargeDeletesComeInPieces: deleting a large subtree never holds the database for
// long: no transaction is about more than a piece of it. A deletion that is broken off
// leaves a tree in which every thread has a folder, and goes on when it is called again.
func TestLargeDeletesComeInPieces(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		ctx, cancel := context.WithCancelCause(t.Context())
		broken := errors.New("broken off")
		deleting, pieces := false, 0
		s := on(t, storetest.Open(t, dsn, sqldb.Options{}), func() time.Time {
			if deleting {
				if pieces++; pieces == 2 {
					cancel(broken)
				}
			}
			return time.Now()
		})
		before := largeTree(t, s)
		remove := tree.DeleteFolder{WorkspaceID: "w", FolderID: "top", Recursive: true}

		deleting = true
		if _, err := s.DeleteFolder(ctx, remove); !errors.Is(err, broken) {
			t.Errorf("broken off: %v", err)
		}
		wantThreadsPlaced(t, s, "top")
		if _, err := s.DeleteFolder(t.Context(), remove); err != nil {
			t.Fatal(err)
		}
		page, err := s.Tree(t.Context(), tree.Query{Scope: tree.Scope{WorkspaceID: "w"}, Depth: tree.MaxDepth})
		if err != nil || len(page.Folders) != 1 || len(page.AgentsDocs) != 0 {
			t.Errorf("left: %d folders, %d documents, %v", len(page.Folders), len(page.AgentsDocs), err)
		}
		wantThreadsPlaced(t, s, "")
		wantSmallTransactions(t, s, before)
	})
}

// largeTree makes a folder "top" in "parent" with wide and deep parts, and returns
// where the log of changes is then.
func largeTree(t *testing.T, s *treestore.Store) tree.Seq {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "w", Name: "w"})
	check(err)
	folder := func(parent, id string) {
		t.Helper()
		_, err := s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "w", ParentID: tree.FolderID(parent), ID: id, Name: id})
		check(err)
	}
	thread := func(in, id string) {
		t.Helper()
		_, err := s.CreateThread(ctx, tree.CreateThread{WorkspaceID: "w", FolderID: tree.FolderID(in), ID: id, Title: id})
		check(err)
	}
	folder("", "parent")
	folder("parent", "top")
	folder("top", "wide")
	for n := range treestore.DeletePiece {
		folder("wide", fmt.Sprintf("wide%d", n))
	}
	for n := range treestore.DeletePiece + 10 {
		thread("wide", fmt.Sprintf("many%d", n))
	}
	for at, n := "top", 0; n < 40; n++ {
		next := fmt.Sprintf("deep%d", n)
		folder(at, next)
		thread(next, "in"+next)
		at = next
	}
	for n := range 20 {
		_, err := s.Save(ctx, tree.Save{
			Scope: tree.Scope{WorkspaceID: "w", FolderID: tree.FolderID(fmt.Sprintf("deep%d", n))}, Content: strings.Repeat("x", tree.MaxChars),
		})
		check(err)
	}
	changes, err := s.Changes(ctx, 0, 10_000)
	check(err)
	return changes.Next
}

// wantThreadsPlaced expects all threads in folders that are there: "parent", or below
// another.
func wantThreadsPlaced(t *testing.T, s *treestore.Store, below tree.FolderID) {
	t.Helper()
	q := tree.Query{Scope: tree.Scope{WorkspaceID: "w"}, Depth: tree.MaxDepth}
	folders, threads, moved := map[tree.FolderID]bool{}, []tree.Thread{}, 0
	for more := true; more; more = q.Cursor != "" {
		page, err := s.Tree(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Folders {
			folders[tree.FolderID(f.ID)] = true
		}
		threads, q.Cursor = append(threads, page.Threads...), ""
		if page.NextCursor != nil {
			q.Cursor = *page.NextCursor
		}
	}
	for _, th := range threads {
		if !folders[th.FolderID] {
			t.Errorf("thread %s is in %q, which is not there", th.ID, th.FolderID)
		}
		if th.FolderID == "parent" {
			moved++
		}
	}
	if want := treestore.DeletePiece + 50; len(threads) != want || below == "" && moved != want || below != "" && !folders[below] {
		t.Errorf("%d threads, %d of them moved; %d folders", len(threads), moved, len(folders))
	}
}

// wantSmallTransactions expects several transactions, none with much more than a piece.
func wantSmallTransactions(t *testing.T, s *treestore.Store, after tree.Seq) {
	t.Helper()
	rows, chars := map[tree.Seq]int{}, map[tree.Seq]int{}
	for more := true; more || len(rows) < 4; { // others on the server may hold them up
		changes, err := s.Changes(t.Context(), after, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes.List {
			if c.Doc != nil {
				chars[c.Seq] += c.Doc.Chars
			} else {
				rows[c.Seq]++
			}
		}
		after, more = changes.Next, changes.More
	}
	for seq, n := range rows {
		if n > treestore.DeletePiece || chars[seq] > 16*tree.MaxChars {
			t.Errorf("transaction %d is about %d folders and threads, and %d characters", seq, n, chars[seq])
		}
	}
}
