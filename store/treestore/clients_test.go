package treestore_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
)

// TestManyClientsOfOneDocument: each save wins or gets a conflict, and none that won
// is lost.
func TestManyClientsOfOneDocument(t *testing.T) {
	t.Parallel()

	const clients, each = 50, 5
	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		var mu sync.Mutex
		won := map[int64]string{}
		var group sync.WaitGroup
		for n := range clients {
			group.Go(func() {
				for v := range each {
					text := fmt.Sprintf("%d of client %d", v, n)
					if got, ok := saveOnce(t, s, text); ok {
						mu.Lock()
						if other, taken := won[got]; taken {
							t.Errorf("version %d was made twice: %q and %q", got, other, text)
						}
						won[got] = text
						mu.Unlock()
					}
				}
			})
		}
		group.Wait()
		list, err := s.Revisions(t.Context(), tree.RevisionQuery{Scope: scope(""), IncludeContent: true, Limit: tree.MaxLimit})
		if err != nil || len(list) != len(won) || len(won) == 0 {
			t.Fatalf("%d revisions of %d saves that won, %v", len(list), len(won), err)
		}
		for n, r := range list {
			if r.Version != int64(len(list)-n) || *r.Content != won[r.Version] {
				t.Errorf("revision %d is version %d with %q, want %q", n, r.Version, *r.Content, won[r.Version])
			}
		}
		t.Logf("%d of %d saves won", len(won), clients*each)
	})
}

// saveOnce saves on what is there, once, and returns the version it made. What was
// told about a conflict has to be so.
func saveOnce(t *testing.T, s *treestore.Store, text string) (int64, bool) {
	view, err := s.Doc(t.Context(), scope(""))
	if err != nil {
		t.Error(err)
		return 0, false
	}
	expected := new(int64(0))
	if view.Explicit != nil {
		expected = &view.Explicit.Version
	}
	got, err := s.Save(t.Context(), tree.Save{Scope: scope(""), Content: text, ExpectedVersion: expected, SaveReason: tree.Autosave, Actor: "ann"})
	switch {
	case err == nil:
		if got.Doc.Version != *expected+1 {
			t.Errorf("a save on version %d made version %d", *expected, got.Doc.Version)
		}
		return got.Doc.Version, true
	case !tree.HasCode(err, tree.CodeConflict):
		t.Errorf("a save: %v", err)
	}
	return 0, false
}
