package treestore_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/store/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
	"github.com/grapnelhq/grapnel/tree/treetest"
)

// clientsOf are n clients of each store, with actors of their own.
func clientsOf(n int, stores ...tree.Store) []treetest.Client {
	var list []treetest.Client
	for i, s := range stores {
		for _, c := range treetest.Clients(s, n) {
			c.Actor = fmt.Sprintf("%s-of-%d", c.Actor, i)
			list = append(list, c)
		}
	}
	return list
}

// TestRandom compares random sequences with the model, by clients of two programs
// on one database.
func TestRandom(t *testing.T) {
	t.Parallel()

	storetest.Both(t, newPostgres, func(t *testing.T, dsn string) {
		here, there := open(t, dsn), open(t, dsn)
		for seed := range uint64(4) {
			treetest.Run(t, treetest.RunOptions{Seed: seed + 1, Steps: 500, Clients: clientsOf(2, here, there)})
		}
		checkMarks(t, dsn)
	})
}

// TestRandomAtOnce has clients of two programs that work at the same time.
func TestRandomAtOnce(t *testing.T) {
	t.Parallel()

	storetest.Both(t, newPostgres, func(t *testing.T, dsn string) {
		here, there := open(t, dsn), open(t, dsn)
		for seed := range uint64(2) {
			treetest.RunConcurrent(t, treetest.RunOptions{Seed: seed + 1, Steps: 150, Clients: clientsOf(5, here, there)})
		}
		checkMarks(t, dsn)
	})
}

// checkMarks compares what is noted at folders with what they have.
func checkMarks(t *testing.T, dsn string) {
	t.Helper()
	const active = `EXISTS (SELECT 1 FROM thread_agents_doc d WHERE d.workspace_id = f.workspace_id AND d.folder_id = f.id AND d.status = 'active')`
	for what, query := range map[string]string{
		"has_doc": "SELECT count(*) FROM tree_folders f WHERE f.has_doc <> " + active,
		"parent": `SELECT count(*) FROM tree_folders f LEFT JOIN tree_folders p ON p.workspace_id = f.workspace_id AND p.id = f.parent_id
			WHERE coalesce(f.parent, -1) <> coalesce(p.node, -1)`,
	} {
		var wrong int
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), query).Scan(&wrong); err != nil || wrong != 0 {
			t.Errorf("%s is wrong for %d folders, %v", what, wrong, err)
		}
	}
}

// TestManyClientsOfOneDocument: each save wins or gets a conflict, and none that won
// is lost.
func TestManyClientsOfOneDocument(t *testing.T) {
	t.Parallel()

	const clients, each = 200, 5
	storetest.Both(t, newPostgres, func(t *testing.T, dsn string) {
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
