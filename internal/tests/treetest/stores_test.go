package treetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/tree"
)

// twoStores returns n clients of each of two stores on one database, as two programs have them.
func twoStores(t *testing.T, dsn string, n int, now func() time.Time) []Client {
	t.Helper()
	var list []Client
	for i := range 2 {
		s := storetest.TreeOf(t, dsn, store.Options{Now: now, LockTimeout: time.Minute})
		for k := range n {
			list = append(list, Client{Store: func() tree.Store { return s }, Actor: fmt.Sprintf("client-%d-of-%d", k, i)})
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
				Run(t, RunOptions{Seed: seed, Steps: steps, Clients: twoStores(t, dsn, 2, clock.Now), Clock: clock})
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
		RunConcurrent(t, RunOptions{Seed: 1, Steps: steps, Clients: twoStores(t, dsn, 5, nil)})
		storetest.CheckFolders(t, dsn)
	})
}
