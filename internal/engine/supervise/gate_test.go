package supervise

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// brokenLimiter has no slot and says so.
type brokenLimiter struct{}

func (brokenLimiter) Acquire(context.Context) (func(), error) { return nil, errCause }

func TestLimiterErrorIsTheHostsFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{Limiter: brokenLimiter{}})
		r.serve()
		st := r.Status()
		if st.State != StateBackoff || st.Code != CodeUnavailable || st.Failures != 0 || !errors.Is(st.Last, errCause) {
			t.Errorf("status = %+v, want backoff, not counted", st)
		}
		r.mustHalt()
	})
}

// TestOrdersReachTheQueue gives orders to a service that waits for its slot.
func TestOrdersReachTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1)
		release := acquire(t, g.Required())
		r := newRig(t, Options{Limiter: g.Optional()})
		r.serve()
		r.Recycle(1, "new configuration")
		synctest.Wait()
		r.Report(2, Failure{Class: ClassPermanent, Code: "checksum_mismatch"})
		synctest.Wait()
		r.Release()
		synctest.Wait()
		r.mustHalt()
		if n := r.service.starts.Load(); n != 0 {
			t.Errorf("%d starts without a slot", n)
		}
		checkLog(t, r, "0s starting", "0s starting", "0s quarantined checksum_mismatch", "0s starting", "0s stopped")
		release()
		acquire(t, g.Optional())()
	})
}

// TestHerd starts twenty services through four slots. Two of them hang: they
// hold back the others for no longer than SlotHold, and their own deadline runs
// from their slot.
func TestHerd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const services, slots = 20, 4
		g := NewGate(slots)
		begun := time.Now()
		var mu sync.Mutex
		starts := map[time.Duration]int{}
		rigs := make([]*rig, services)
		for i := range rigs {
			rigs[i] = newRig(t, Options{Limiter: g.Optional()})
			rigs[i].service.onStart = func(ctx context.Context, incarnation uint64) error {
				if incarnation > 1 {
					return nil
				}
				mu.Lock()
				starts[time.Since(begun)]++
				mu.Unlock()
				if i < 2 {
					return mute(ctx)
				}
				time.Sleep(500 * time.Millisecond)
				return nil
			}
			rigs[i].serve()
		}
		for i, r := range rigs {
			if err := r.Wait(t.Context()); (err != nil) != (i < 2) {
				t.Errorf("service %d: %v", i, err)
			}
		}
		mu.Lock()
		const ms = time.Millisecond
		want := map[time.Duration]int{0: 4, 500 * ms: 2, 1000 * ms: 4, 1500 * ms: 4, 2000 * ms: 4, 2500 * ms: 2}
		if diff := cmp.Diff(starts, want); diff != "" {
			t.Errorf("starts by time: got -, want +\n%s", diff)
		}
		mu.Unlock()
		for _, r := range rigs {
			r.mustHalt()
		}
	})
}
