package treestore_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/store/storetest"
	"github.com/grapnelhq/grapnel/tree"
)

// TestPowerCut cuts the power while many clients save, archive and restore. Each
// version that was acknowledged is there, without gaps, and the tree is whole.
func TestPowerCut(t *testing.T) {
	t.Parallel()

	storetest.Record(t, "plant", "12").Cuts(t, func(t *testing.T, dsn string, printed []string) {
		s := open(t, dsn)
		if len(printed) == 0 {
			return // the folders need not be there
		}
		kept := &ledger{docs: map[string]string{}}
		for _, line := range printed {
			doc, sum, _ := cutLast(line)
			kept.docs[doc] = sum
		}
		kept.check(t, s)
		checkMarks(t, dsn)
		var sound strings.Builder
		rows, err := storetest.Raw(t, dsn).QueryContext(t.Context(), "PRAGMA integrity_check")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			sound.WriteString(line)
		}
		if err := rows.Err(); err != nil || sound.String() != "ok" {
			t.Errorf("integrity: %s, %v", sound.String(), err)
		}
		if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", Name: "after"}); err != nil {
			t.Error(err)
		}
	})
}
