package itemstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// programs are what the test binary is for other tests.
func programs() storetest.Programs {
	return storetest.Programs{"write": writeOn}
}

// writers is how many write in the program that writes.
const writers = 4

// writeOn lets some write, replace, use and forget until the program is killed. It prints what was kept, "+ID hash", and
// what was forgotten, "-ID".
func writeOn(ctx context.Context, dsn, _ string) error {
	s, err := itemstore.Open(ctx, dsn, itemstore.Options{LockTimeout: time.Minute})
	if err != nil {
		return err
	}
	errs := make([]error, writers+1)
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(n)))
			var mine []string
			for errs[n] == nil {
				mine, errs[n] = writeStep(ctx, s, r, mine)
			}
		})
	}
	group.Wait()
	errs[writers] = s.Close()
	return errors.Join(errs...)
}

// writeStep does one thing, and prints what came of it. Mine are ids of this writer
// that were not forgotten.
func writeStep(ctx context.Context, s *itemstore.Store, r *rand.Rand, mine []string) ([]string, error) {
	switch what := r.IntN(20); {
	case what == 0 && len(mine) > 0:
		// What is forgotten may have versions of others.
		removed, err := s.Forget(ctx, everything("w"), mine[:1])
		for _, id := range removed.IDs {
			fmt.Printf("-%s\n", id)
		}
		return mine[1:], err
	case what < 4 && len(mine) > 0:
		return mine, s.Used(ctx, everything("w"), mine[:min(3, len(mine))], time.Now())
	}
	b := itemstore.Batch{WorkspaceID: "w"}
	for range 1 + r.IntN(5) {
		n := fact(fmt.Sprintf("%s number %d", sentence(r), r.Uint64()))
		if r.IntN(4) == 0 {
			n = of(itemstore.ScopeUser, "ann", n)
		}
		if r.IntN(4) == 0 {
			n.Slot = fmt.Sprint("slot", r.IntN(6))
		}
		b.Items = append(b.Items, n)
	}
	outcomes, err := s.Remember(ctx, b)
	for _, o := range outcomes {
		fmt.Printf("+%s %s\n", o.Item.ID, o.Item.Hash)
		mine = append(mine, o.Item.ID)
	}
	return mine, err
}
