package treetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/internal/treetest"
	"github.com/grapnelhq/grapnel/tree"
)

// A model with a clock that stands still gives the same ids each time.
func ExampleNewModel() {
	clock := treetest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	m := treetest.NewModel(clock.Now)
	ctx := context.Background()
	w, err := m.CreateWorkspace(ctx, tree.CreateWorkspace{Name: "Acme"})
	if err != nil {
		fmt.Println(err)
	}
	clock.Add(time.Hour)
	saved, err := m.Save(ctx, tree.Save{Scope: tree.Scope{WorkspaceID: w.ID}, Content: "Be brief."})
	fmt.Println(w.ID, saved.Doc.UpdatedAt.Format(time.RFC3339), err)
	// Output: 01KJMMA2G00000000000000001 2026-03-01T13:00:00Z <nil>
}
