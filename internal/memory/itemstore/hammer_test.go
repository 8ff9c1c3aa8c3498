package itemstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestHammer has many at once write, read, use and forget the same few items, by two
// stores on one database, as two gateways have it. Nobody fails, no text is there
// twice, no slot has two answers, and what was counted is right.
func TestHammer(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		stores := []*itemstore.Store{open(t, dsn, itemstore.Options{}), open(t, dsn, itemstore.Options{})}
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), 77))
				for range rounds(20, 40) {
					if err := hit(t, stores[n%2], r); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		seen := map[string]bool{}
		for _, i := range list(t, stores[0], everything("w")) {
			for _, unique := range []string{"text " + recall.Key(i.Text), "slot " + i.Slot} {
				if i.SupersededBy != "" || unique == "slot " {
					continue
				}
				if unique += fmt.Sprint(" of ", i.WorkspaceID, i.Scope, i.ScopeID); seen[unique] {
					t.Errorf("%s is there twice", unique)
				}
				seen[unique] = true
			}
		}
		checkIndex(t, dsn)
	})
}

// hit does one thing to a store.
func hit(t *testing.T, s *itemstore.Store, r *rand.Rand) error {
	t.Helper()
	view := itemstore.View{WorkspaceID: "w", ThreadID: "a", UserID: "b"}
	items, _, err := s.List(t.Context(), view, itemstore.Filter{}, itemstore.Page{Limit: 10})
	if err != nil {
		return err
	}
	var ids []string
	for _, i := range items {
		ids = append(ids, i.ID)
	}
	r.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
	switch r.IntN(8) {
	case 0:
		_, err = s.Forget(t.Context(), view, ids[:min(2, len(ids))])
	case 1, 2:
		err = s.Used(t.Context(), view, ids[:min(5, len(ids))], time.Now())
	case 3:
		_, err = s.Recall(t.Context(), view, recall.Read("fact number 3 and 7"), time.Now())
	default:
		b := itemstore.Batch{WorkspaceID: []string{"w", "w", "v"}[r.IntN(3)], Restore: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			b.Key = fmt.Sprint("key ", r.IntN(20))
		}
		for range 1 + r.IntN(8) {
			n := fact(fmt.Sprint("fact number ", r.IntN(12)))
			n.Category = turnpolicy.Categories()[r.IntN(6)]
			if r.IntN(2) == 0 {
				n = of([]itemstore.Scope{itemstore.ScopeThread, itemstore.ScopeUser}[r.IntN(2)], []string{"a", "b"}[r.IntN(2)], n)
			}
			if r.IntN(3) == 0 {
				n.Slot = fmt.Sprint("slot ", r.IntN(3))
			}
			b.Items = append(b.Items, n)
		}
		_, err = s.Remember(t.Context(), b)
	}
	return err
}

// TestOneKeyAtOnce: of batches with one key that come together one is written, and all
// get its answer.
func TestOneKeyAtOnce(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		stores := []*itemstore.Store{open(t, dsn, itemstore.Options{}), open(t, dsn, itemstore.Options{})}
		for round := range 10 {
			var group sync.WaitGroup
			var mu sync.Mutex
			first := 0
			for n := range 6 {
				group.Go(func() {
					got, err := stores[n%2].Remember(t.Context(), itemstore.Batch{
						WorkspaceID: "w", Key: fmt.Sprint("key ", round), Items: []itemstore.Item{fact(fmt.Sprint("by ", n, " in round ", round))},
					})
					mu.Lock()
					defer mu.Unlock()
					if first += len(got); err != nil {
						t.Errorf("%+v, %v", got, err)
					}
				})
			}
			group.Wait()
			if first != 1 {
				t.Errorf("round %d: %d wrote", round, first)
			}
		}
	})
}
