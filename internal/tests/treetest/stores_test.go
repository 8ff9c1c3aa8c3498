package treetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store"
)

// twoStores returns n clients of each of two stores on one database, as two programs have them.
func twoStores(t *testing.T, dsn string, n int, now func() time.Time) []client {
	t.Helper()
	var list []client
	for i := range 2 {
		s := storetest.TreeOf(t, dsn, store.Options{Now: now, LockTimeout: time.Minute})
		for j := range n {
			list = append(list, client{store: func() tree.Store { return s }, actor: fmt.Sprintf("client-%d-of-%d", j, i)})
		}
	}
	return list
}

// TestStores compares random calls by clients of two programs on one database with the model.
func TestStores(t *testing.T) {
	t.Parallel()

	seeds := uint64(3)
	if storetest.Long() {
		seeds = 12
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()

			storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
				clock := storetest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, time.UTC))
				steps := 1000
				if strings.HasPrefix(dsn, "postgres:") && !storetest.Long() {
					steps = 300
				}
				play(t, runOptions{seed: seed, steps: steps, clients: twoStores(t, dsn, 2, clock.Now), clock: clock})
				storetest.CheckFolders(t, dsn)
			})
		})
	}
}

// TestStoresConcurrent has clients of two programs that work at the same time.
func TestStoresConcurrent(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		steps := 50
		if storetest.Long() {
			steps = 500
		}
		playAtOnce(t, crowdOptions{seed: 1, steps: steps, clients: twoStores(t, dsn, 5, nil)})
		storetest.CheckFolders(t, dsn)
	})
}
