package itemstore_test

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestIDsOfOthers: an id that is another workspace's by now, or that another workspace's
// item names, is of no effect there.
func TestIDsOfOthers(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		b := itemstore.Batch{WorkspaceID: "w", Key: "k", Items: []itemstore.New{fact("of w")}}
		moved := write(t, s, b)[0].Item
		forget(t, s, moved.ID)
		// The version of v names an item that there is not yet.
		version := moved
		version.ID, version.WorkspaceID, version.Text, version.SupersededBy = "01K0000000000000000000000A", "v", "version of v", moved.ID
		importAll(t, s, []itemstore.Item{version})
		moved.WorkspaceID, moved.Text = "u", "of u"
		importAll(t, s, []itemstore.Item{moved})
		if removed, err := s.Forget(t.Context(), everything("u"), []string{moved.ID}); err != nil || len(removed.IDs) != 1 {
			t.Errorf("u forgets: %+v, %v", removed, err)
		}
		if got := list(t, s, everything("v")); len(got) != 1 || got[0].Text != "version of v" {
			t.Errorf("v has %+v", got)
		}
		checkIndex(t, dsn)
	})
}
