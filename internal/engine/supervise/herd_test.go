package supervise

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
