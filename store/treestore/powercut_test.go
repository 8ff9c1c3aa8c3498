//go:build unix

package treestore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
)

// TestPowerCut cuts the power while many clients save, archive and restore. Each
// version that was acknowledged is there, without gaps, and the tree is whole.
func TestPowerCut(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Record(t, "plant", "12").Cuts(t, func(t *testing.T, dsn string, printed []string) {
		s := open(t, dsn)
		if len(printed) == 0 {
			return // the folders need not be there
		}
		kept := map[string]string{}
		for _, line := range printed {
			doc, sum := cutLast(line)
			kept[doc] = sum
		}
		checkKept(t, s, kept)
		storetest.CheckFolders(t, dsn)
		var sound string
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
			t.Errorf("integrity: %s, %v", sound, err)
		}
		if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", Name: "after"}); err != nil {
			t.Error(err)
		}
	})
}

func cutLast(s string) (before, after string) {
	at := strings.LastIndexByte(s, ' ')
	return s[:max(at, 0)], s[at+1:]
}

// checkKept compares what was acknowledged, hashes by document and version, with what is there.
func checkKept(t *testing.T, s *treestore.Store, kept map[string]string) {
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
	for doc, sum := range kept {
		if found[doc] != sum {
			t.Errorf("%s was acknowledged with %s, there is %q", doc, sum, found[doc])
		}
	}
	if page, err := s.Tree(t.Context(), tree.Query{Scope: scope("")}); err != nil || len(page.AgentsDocs) > saverPlaces {
		t.Errorf("%d live documents, %v", len(page.AgentsDocs), err)
	}
}
