package treetest

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/tree"
)

// workers is how many callers there are at once.
const workers = 16

// together calls f as many workers at once, and waits for them.
func together(n int, f func(worker int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for worker := range n {
		all.Go(func() {
			<-start
			f(worker)
		})
	}
	close(start)
	all.Wait()
}

// testManyOnOne: of saves on one document each wins or gets a conflict; what wins
// is the next version, and none is lost.
func testManyOnOne(t *testing.T, x world) {
	const each = 8
	texts := make([]string, workers*each+1) // by version
	var mu sync.Mutex
	together(workers, func(worker int) {
		expected := int64(0)
		for wins := 0; wins < each; {
			text := fmt.Sprintf("win %d of worker %d", wins, worker)
			got, err := x.Save(t.Context(), tree.Save{Scope: x.scope(""), Content: text, ExpectedVersion: new(expected)})
			if c := conflictOf(err); c != nil && c.ActualVersion != nil && *c.ActualVersion > expected {
				expected = *c.ActualVersion
				continue
			}
			if err != nil || got.Doc.Version != expected+1 || got.Unchanged {
				t.Errorf("saved on version %d: %+v, %v", expected, got, err)
				return
			}
			wins++
			expected = got.Doc.Version
			mu.Lock()
			texts[expected] = text
			mu.Unlock()
		}
	})
	doc := x.view(t, "").Explicit
	if doc == nil || doc.Version != workers*each {
		t.Fatalf("document %+v, want version %d", doc, workers*each)
	}
	list := x.revisions(t, doc.ID)
	if len(list) != workers*each {
		t.Errorf("%d revisions, want %d", len(list), workers*each)
	}
	for n, r := range slices.Backward(list) {
		if r.Version != doc.Version-int64(n) || *r.Content != texts[r.Version] {
			t.Errorf("revision %d is version %d with %q, want %q", n, r.Version, *r.Content, texts[r.Version])
		}
	}
}

// testManyFirst: of first saves of one scope, one makes the document.
func testManyFirst(t *testing.T, x world) {
	for round := range 8 {
		place := x.folder(t, "", fmt.Sprintf("f%d", round))
		var mu sync.Mutex
		var won []tree.Saved
		together(workers, func(worker int) {
			got, err := x.Save(t.Context(), tree.Save{Scope: x.scope(place), Content: strconv.Itoa(worker)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, got)
			} else if c := conflictOf(err); c == nil || c.ActualVersion == nil || *c.ActualVersion != 1 {
				t.Errorf("error %v, want a conflict with version 1", err)
			}
		})
		if len(won) != 1 || won[0].Unchanged {
			t.Fatalf("%d first saves won: %+v", len(won), won)
		}
		same(t, "document", x.view(t, place).Explicit, &won[0].Doc)
		if list := x.revisions(t, won[0].Doc.ID); len(list) != 1 {
			t.Errorf("%d revisions, want 1", len(list))
		}
	}
}

// testManyArchive: saves, archives and restores on one scope leave one live document
// at most, and versions without gaps.
func testManyArchive(t *testing.T, x world) {
	var mu sync.Mutex
	sums := map[string]map[int64]string{} // by document and version
	together(workers, func(worker int) {
		for n := range 8 {
			doc, err := x.saveOrArchive(t, worker, n)
			switch {
			case err != nil && !tree.HasCode(err, tree.CodeConflict) && !tree.HasCode(err, tree.CodeNotFound):
				t.Errorf("worker %d: %v", worker, err)
			case err == nil && doc != nil:
				mu.Lock()
				if sums[doc.ID] == nil {
					sums[doc.ID] = map[int64]string{}
				}
				if had, ok := sums[doc.ID][doc.Version]; ok {
					t.Errorf("version %d of %s was told twice: %s and %s", doc.Version, doc.ID, had, doc.ContentSHA256)
				}
				sums[doc.ID][doc.Version] = doc.ContentSHA256
				mu.Unlock()
			}
		}
	})
	live := x.all(t).AgentsDocs
	if len(live) > 1 {
		t.Errorf("live documents of one scope: %+v", live)
	}
	for id, versions := range sums {
		list := x.revisions(t, id)
		for n, r := range list {
			if r.Version != int64(len(list)-n) || r.ContentSHA256 != versions[r.Version] {
				t.Errorf("revision %d of %d is version %d with %s, told was %s", n, len(list), r.Version, r.ContentSHA256, versions[r.Version])
			}
		}
		if len(list) != len(versions) {
			t.Errorf("%d revisions, %d were told", len(list), len(versions))
		}
	}
}

// saveOrArchive does one of the things that may be done to a scope; the document is
// nil where nothing was done.
func (x world) saveOrArchive(t *testing.T, worker, n int) (*tree.Doc, error) {
	t.Helper()
	switch (worker + n) % 4 {
	case 0:
		got, err := x.Archive(t.Context(), tree.ArchiveDoc{Scope: x.scope("")})
		return got.Doc, err
	case 1:
		got, err := x.Restore(t.Context(), tree.RestoreDoc{Scope: x.scope(""), Version: 1})
		return &got, err
	default:
		view, err := x.Doc(t.Context(), x.scope(""))
		if err != nil {
			return nil, err
		}
		p := tree.Save{Scope: x.scope(""), Content: fmt.Sprintf("%d of %d", n, worker)}
		if view.Explicit != nil {
			p.ExpectedVersion, p.ExpectedDocID = &view.Explicit.Version, view.Explicit.ID
		}
		got, err := x.Save(t.Context(), p)
		return &got.Doc, err
	}
}

// testManyCreates: of creates with one id all get the same, and one made it.
func testManyCreates(t *testing.T, x world) {
	before := x.newest(t)
	together(workers, func(int) {
		ctx := t.Context()
		_, err := x.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "same", Name: "n"})
		_, err2 := x.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: x.w, ID: "same", Name: "n"})
		_, err3 := x.CreateThread(ctx, tree.CreateThread{WorkspaceID: x.w, ID: "same", Title: "n"})
		if err != nil || err2 != nil || err3 != nil {
			t.Errorf("created at once: %v, %v, %v", err, err2, err3)
		}
	})
	if list, _ := x.since(t, before); len(list) != 3 {
		t.Errorf("%d changes, want 3", len(list))
	}
}

// testManyMoves: of two moves that together would make a cycle, one is refused.
func testManyMoves(t *testing.T, x world) {
	x.folders(t, "a", "a1")
	x.folders(t, "b", "b1")
	for range 12 {
		into := [][2]string{{"a", "b1"}, {"b", "a1"}}
		errs := make([]error, 2)
		together(2, func(n int) {
			_, errs[n] = x.MoveFolder(t.Context(), tree.MoveFolder{WorkspaceID: x.w, FolderID: into[n][0], ParentID: tree.FolderID(into[n][1])})
		})
		if (errs[0] == nil) == (errs[1] == nil) || !tree.HasCode(errs[0], tree.CodeCycle) && !tree.HasCode(errs[1], tree.CodeCycle) {
			t.Errorf("moved at once: %v and %v, want one refused as a cycle", errs[0], errs[1])
		}
		if err := wellFormed(x.all(t)); err != nil {
			t.Fatal(err)
		}
		x.moveFolder(t, "a", "")
		x.moveFolder(t, "b", "")
	}
}

// testManyDeletes: what is put into a folder while it is deleted is refused, or
// goes the way of the folder's things.
func testManyDeletes(t *testing.T, x world) {
	for round := range 8 {
		id := fmt.Sprintf("f%d", round)
		place := x.folder(t, "", id)
		var saved tree.Saved
		errs := make([]error, 4)
		together(4, func(n int) {
			switch ctx := t.Context(); n {
			case 0:
				saved, errs[0] = x.Save(ctx, tree.Save{Scope: x.scope(place), Content: "x"})
			case 1:
				_, errs[1] = x.CreateThread(ctx, tree.CreateThread{WorkspaceID: x.w, FolderID: place, ID: "t" + id, Title: "t"})
			case 2:
				_, errs[2] = x.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: x.w, ParentID: place, ID: "below" + id, Name: "n"})
			case 3:
				_, errs[3] = x.DeleteFolder(ctx, tree.DeleteFolder{WorkspaceID: x.w, FolderID: id, Recursive: true})
			}
		})
		for n, err := range errs {
			if err != nil && (n == 3 || !tree.HasCode(err, tree.CodeNotFound)) {
				t.Errorf("call %d: %v", n, err)
			}
		}
		page := x.all(t)
		if err := wellFormed(page); err != nil || len(page.Folders)+len(page.AgentsDocs) != 0 {
			t.Errorf("tree %s, %v; want no folder and no document", shape(page), err)
		}
		_, threads := places(page)
		if at, there := threads["t"+id]; there != (errs[1] == nil) || at != "" {
			t.Errorf("the thread is there: %t, at %q; created with %v", there, at, errs[1])
		}
		if errs[0] == nil {
			if list := x.revisions(t, saved.Doc.ID); len(list) != 2 || list[0].SaveReason != tree.Archive {
				t.Errorf("revisions %+v, want the saved and the archived one", list)
			}
		}
	}
}
