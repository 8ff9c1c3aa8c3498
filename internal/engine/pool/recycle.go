package pool

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/supervise"
)

// Recycling: a process that leaks is replaced by age or by the number of its calls (limits.recycle). The successor is
// started beside it and takes the new calls; the old one ends when its last caller has gone. A process that does not
// answer is stopped first instead, because it holds slots: see Lease.Abandon.

// recycleDrain bounds the wait for a replaced process. Calls end by their own deadlines;
// this is for hosts that give a call more.
const recycleDrain = 10 * time.Minute

// recycleJitter is the random part of limits.recycle.calls: plugins of the same turns get equally many calls.
const recycleJitter = 0.2

// codeRecycled: a new process took over from one that was well (limits.recycle).
const codeRecycled = "recycled"

func (in *Instance) replacement() supervise.Replacement {
	if in.local != nil {
		return supervise.Replacement{}
	}
	return supervise.Replacement{
		Age: in.Declared.Limits.Recycle.Age.D(), Alone: in.Declared.Reload == ReloadExclusive,
		// What is down goes first. A successor does not wait at the plugin's own start
		// gate: its predecessor is not stopped yet.
		Limiter: in.pool.gate.Optional(), Drain: recycleDrain,
	}
}

// ReloadExclusive is the configuration's word for plugins that must not run twice.
const ReloadExclusive = "exclusive"

// visits counts the callers at an incarnation, and the calls that it got.
type visits struct {
	here        atomic.Int64  // here are the callers. Once no more may come, closedBy is added to it.
	idle        chan struct{} // closed when the last one has gone after that
	once, shut  sync.Once
	calls, most atomic.Int64 // calls are counted up to most, at which the process is replaced; 0 is never
}

// closedBy makes a count negative, however many callers there are.
const closedBy = math.MinInt64 / 2

func (in *Instance) newVisits() *visits {
	v := &visits{idle: make(chan struct{})}
	random := in.pool.opts.Random
	if random == nil {
		random = rand.Float64
	}
	if n := in.Declared.Limits.Recycle.Calls; n > 0 && in.local == nil {
		v.most.Store(max(1, int64(n)-int64(recycleJitter*random()*float64(n))))
	}
	return v
}

// enter notes a caller; false if the incarnation has been replaced.
func (v *visits) enter() bool {
	if v.here.Add(1) > 0 {
		return true
	}
	v.leave()
	return false
}

func (v *visits) leave() {
	if v.here.Add(-1) == closedBy {
		v.once.Do(func() { close(v.idle) }) // a caller that comes too late leaves again
	}
}

// Leave must be called by each caller that got the incarnation, when it is done.
func (inc *Incarnation) Leave() { inc.visits.leave() }

// Called counts a call, and replaces the process when it got enough of them.
func (inc *Incarnation) Called() {
	v := inc.visits
	if n := v.most.Load(); n > 0 && v.calls.Add(1) == n {
		inc.Instance.sup.Replace(inc.Number, "it got its share of calls")
	}
}

var _ supervise.Drainer = (*Incarnation)(nil)

// Drain implements supervise.Drainer: it waits for the callers.
func (inc *Incarnation) Drain(ctx context.Context) {
	v := inc.visits
	v.shut.Do(func() {
		v.here.Add(1) // that the last one to go is counted here or there, once
		v.here.Add(closedBy)
		v.leave()
	})
	select {
	case <-v.idle:
	case <-inc.done: // all calls have failed with it
	case <-ctx.Done():
	}
}

// takeOver puts the incarnation in force that the supervisor has found to be up.
func (in *Instance) takeOver(number uint64) {
	inc := in.fresh.Load()
	if inc == nil || inc.Number != number {
		return // it is in force already
	}
	in.fresh.CompareAndSwap(inc, nil)
	in.live.Store(inc)
	select {
	case <-inc.done: // in this moment
		in.live.CompareAndSwap(inc, nil)
	default:
	}
}
