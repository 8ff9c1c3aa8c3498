package runtime

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/grapnelhq/grapnel/config"
)

// visited is an incarnation of which only its visits matter.
func visited(calls int, random func() float64) *incarnation {
	in := &instance{engine: &Engine{opts: Options{Random: random}}}
	in.declared.Limits.Recycle = config.Recycle{Calls: calls}
	return &incarnation{in: in, visits: in.newVisits(), done: make(chan struct{})}
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
					inc.visits.leave()
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

// BenchmarkVisit is what recycling adds to each call.
func BenchmarkVisit(b *testing.B) {
	inc := visited(1<<40, nil)
	b.ReportAllocs()
	for b.Loop() {
		inc.visits.enter()
		inc.asked()
		inc.visits.leave()
	}
}
