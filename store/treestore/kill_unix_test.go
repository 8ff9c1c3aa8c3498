//go:build unix

package treestore_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
)

// TestKilledLosesNothing kills a program that saves for many clients, again and
// again. What it was told is kept, is kept; no scope has two live documents, and
// versions are without gaps.
func TestKilledLosesNothing(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		makePlaces(t, s)
		random := rand.New(rand.NewPCG(7, 11))
		kept := &ledger{docs: map[string]string{}}
		runs := 2
		if storetest.Long() {
			runs = 50
		}
		for range runs {
			cmd := storetest.Program(t, "save", dsn, "1000000")
			after := 1 + random.IntN(200)
			err := kept.follow(t, cmd, func(n int) {
				if n == after {
					if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
			})
			if err == nil {
				t.Fatal("the program ended by itself")
			}
			kept.check(t, s)
		}
		storetest.CheckFolders(t, dsn)
	})
}

// TestProgramsAtOnce has two programs that save on one database at the same time.
func TestProgramsAtOnce(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		makePlaces(t, s)
		kept := &ledger{docs: map[string]string{}}
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				if err := kept.follow(t, storetest.Program(t, "save", dsn, "30"), func(int) {}); err != nil {
					t.Errorf("a program: %v", err)
				}
			})
		}
		group.Wait()
		kept.check(t, s)
		storetest.CheckFolders(t, dsn)
	})
}

func makePlaces(t *testing.T, s *treestore.Store) {
	t.Helper()
	for n := range saverPlaces {
		id := "f" + strconv.Itoa(n)
		if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", ID: id, Name: id}); err != nil {
			t.Fatal(err)
		}
	}
}

// ledger is what was acknowledged: hashes by document and version.
type ledger struct {
	mu   sync.Mutex
	docs map[string]string
}

// follow runs a program to its end and notes what it prints. Each is called with how
// many lines there were by then.
func (l *ledger) follow(t *testing.T, cmd *exec.Cmd, each func(n int)) error {
	t.Helper()
	return storetest.Follow(cmd, func(n int, line string) {
		doc, sum := cutLast(line)
		l.mu.Lock()
		if other, taken := l.docs[doc]; taken {
			t.Errorf("%s was acknowledged twice: %s and %s", doc, other, sum)
		}
		l.docs[doc] = sum
		l.mu.Unlock()
		each(n)
	})
}

func cutLast(s string) (before, after string) {
	at := strings.LastIndexByte(s, ' ')
	return s[:max(at, 0)], s[at+1:]
}

// check compares what was acknowledged with what is there.
func (l *ledger) check(t *testing.T, s *treestore.Store) {
	t.Helper()
	found := map[string]string{}
	for n := range saverPlaces {
		place := scope(tree.FolderID("f" + strconv.Itoa(n)))
		view, err := s.Doc(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		if view.Explicit != nil {
			ids = append(ids, view.Explicit.ID)
		}
		archived, err := s.ArchivedDocs(t.Context(), tree.ArchivedQuery{Scope: place, Limit: tree.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range archived {
			ids = append(ids, d.ID)
		}
		for _, id := range ids {
			list, err := s.Revisions(t.Context(), tree.RevisionQuery{Scope: place, DocID: id, Limit: tree.MaxLimit})
			if err != nil {
				t.Fatal(err)
			}
			for n, r := range list {
				if r.Version != int64(len(list)-n) {
					t.Errorf("document %s: revision %d is version %d", id, n, r.Version)
				}
				found[fmt.Sprint(id, " ", r.Version)] = r.ContentSHA256
			}
		}
	}
	for doc, sum := range l.docs {
		if found[doc] != sum {
			t.Errorf("%s was acknowledged with %s, there is %q", doc, sum, found[doc])
		}
	}
	if page, err := s.Tree(t.Context(), tree.Query{Scope: scope("")}); err != nil || len(page.AgentsDocs) > saverPlaces {
		t.Errorf("%d live documents, %v", len(page.AgentsDocs), err)
	}
}
