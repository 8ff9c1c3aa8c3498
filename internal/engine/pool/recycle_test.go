package pool

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
)

// visited is an incarnation of which only its visits matter.
func visited(calls int, random func() float64) *Incarnation {
	in := &Instance{pool: New(Options{Random: random})}
	in.Declared.Limits.Recycle = config.Recycle{Calls: calls}
	return &Incarnation{Instance: in, visits: in.newVisits(), done: make(chan struct{})}
}

// TestVisits: whoever has entered is waited for, and nobody enters after that,
// however callers come and go.
func TestVisits(t *testing.T) {
	t.Parallel()

	for range 50 {
		inc := visited(0, nil)
		var inside, entered atomic.Int32
		var drained atomic.Bool
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 8 {
			all.Go(func() {
				<-begin
				for inc.visits.enter() {
					entered.Add(1)
					inside.Add(1)
					if drained.Load() {
						t.Error("somebody is inside after the drain")
					}
					inside.Add(-1)
					inc.Leave()
					runtime.Gosched()
				}
			})
		}
		close(begin)
		for entered.Load() == 0 { // one at least comes in time
			runtime.Gosched()
		}
		inc.Drain(t.Context())
		drained.Store(true)
		if n := inside.Load(); n != 0 {
			t.Errorf("%d are inside", n)
		}
		all.Wait()
		if inc.visits.enter() {
			t.Error("somebody entered after the drain")
		}
	}
}

// TestDrainEnds: also when somebody stays, with its context or with the process.
func TestDrainEnds(t *testing.T) {
	t.Parallel()

	inc := visited(0, nil)
	inc.visits.enter()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inc.Drain(ctx)

	inc = visited(0, nil)
	inc.visits.enter()
	close(inc.done)
	inc.Drain(t.Context())
}

// TestShareOfCalls: a fifth at most is taken off, and one is left.
func TestShareOfCalls(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		calls  int
		random float64
		want   int64
	}{
		{0, 1, 0},
		{1, 1, 1},
		{10, 0, 10},
		{10, 1, 8},
		{100_000, 0.5, 90_000},
	} {
		if got := visited(tt.calls, func() float64 { return tt.random }).visits.most.Load(); got != tt.want {
			t.Errorf("%d calls, draw %v: %d, want %d", tt.calls, tt.random, got, tt.want)
		}
	}
	if got := visited(1000, nil).visits.most.Load(); got < 800 || got > 1000 {
		t.Errorf("%d of 1000 calls", got)
	}
}

// TestNoSharesInProcess: a plugin inside the host is not started a second time beside
// itself, however many calls it gets.
func TestNoSharesInProcess(t *testing.T) {
	t.Parallel()

	in := &Instance{pool: New(Options{}), local: struct{ Plugin }{}}
	in.Declared.Name, in.Declared.Limits.Recycle = "p", config.Recycle{Calls: 1}
	if n := in.newVisits().most.Load(); n != 0 {
		t.Errorf("it is replaced after %d calls", n)
	}
}

// drainee is a service that drains for as long as it may.
type drainee struct{ stopped atomic.Int32 }

func (d *drainee) Start(context.Context, uint64) (supervise.Running, error) { return d, nil }
func (*drainee) Done() <-chan struct{}                                      { return nil }
func (*drainee) Err() error                                                 { return nil }
func (*drainee) Drain(ctx context.Context)                                  { <-ctx.Done() }
func (d *drainee) Stop(context.Context) error                               { d.stopped.Add(1); return nil }

// TestAbandonedWhileReplaced: calls that hang in a process which was replaced end the
// wait for it, and are not held against its successor.
func TestAbandonedWhileReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &drainee{}
		sup := supervise.New(service, supervise.Options{Name: "p", Replacement: supervise.Replacement{Drain: time.Hour}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sup.Serve(ctx) }()
		synctest.Wait()
		sup.Replace(1, "it got its share of calls")
		synctest.Wait()

		in := &Instance{sup: sup, slots: newSlots(4)}
		old, now := &Incarnation{Instance: in, Number: 1}, &Incarnation{Instance: in, Number: 2}
		for range 3 {
			in.abandon(old)
			in.abandon(now)
		}
		synctest.Wait()
		if st := sup.Status(); st.Incarnation != 2 || service.stopped.Load() != 0 {
			t.Fatalf("%d stopped, status %+v: neither has too many", service.stopped.Load(), st)
		}
		in.abandon(old)
		synctest.Wait()
		if st := sup.Status(); st.Incarnation != 2 || st.State != supervise.StateReady || service.stopped.Load() != 1 {
			t.Errorf("%d stopped, status %+v: the old one has too many", service.stopped.Load(), st)
		}
		in.comeBack(now)
		in.abandon(now)
		in.abandon(now)
		synctest.Wait()
		if st := sup.Status(); st.Incarnation != 3 || service.stopped.Load() != 2 {
			t.Errorf("%d stopped, status %+v: the new one has too many", service.stopped.Load(), st)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
