//go:build unix

package treestore_test

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/storetest"
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
		kept := &ledger{docs: map[string]string{}}
		for _, line := range printed {
			doc, sum := cutLast(line)
			kept.docs[doc] = sum
		}
		kept.check(t, s)
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
