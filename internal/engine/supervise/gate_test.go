package supervise

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// acquire takes a slot or fails the test.
func acquire(t *testing.T, l Limiter) func() {
	t.Helper()
	release, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func TestGateOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1)
		release := acquire(t, g.Optional())
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, who := range []string{"optional 1", "optional 2", "required 1", "optional 3", "required 2"} {
			l := g.Optional()
			if who[0] == 'r' {
				l = g.Required()
			}
			wg.Go(func() {
				done := acquire(t, l)
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				done()
			})
			synctest.Wait() // queued, before the next one comes
		}
		if len(order) > 0 {
			t.Fatalf("%v went through a full gate", order)
		}
		release()
		wg.Wait()
		want := []string{"required 1", "required 2", "optional 1", "optional 2", "optional 3"}
		if diff := cmp.Diff(order, want); diff != "" {
			t.Errorf("order: got -, want +\n%s", diff)
		}
	})
}

func TestGateGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(0) // as 1
		release := acquire(t, g.Required())
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.Optional().Acquire(ctx); !errors.Is(err, errCause) {
				t.Errorf("error = %v, want the cause", err)
			}
		})
		synctest.Wait()
		cancel(errCause)
		wg.Wait()
		release()
		release() // a second release gives nothing
		acquire(t, g.Optional())
		if g.free != 0 || slices.ContainsFunc(g.lanes[:], func(q []chan struct{}) bool { return len(q) > 0 }) {
			t.Errorf("free = %d, lanes = %v, want an empty full gate", g.free, g.lanes)
		}
	})
}

// TestGateGivesUpAGrantedSlot is the race that cannot be provoked from outside:
// the slot comes in the moment in which the wait is given up.
func TestGateGivesUpAGrantedSlot(t *testing.T) {
	t.Parallel()
	g := NewGate(1)
	release := acquire(t, g.Optional())
	first, second := g.enter(1), g.enter(1)
	release() // first has the slot now
	g.abandon(1, first)
	select {
	case <-second:
	default:
		t.Error("the slot was lost, want it handed to the next")
	}
}
