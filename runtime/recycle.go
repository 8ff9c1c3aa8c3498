package runtime

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// Recycling. A process that leaks is replaced from time to time, by age or by the
// number of its calls (limits.recycle), without anybody noticing: the successor is
// started and configured beside it, then takes the new calls, and the old one ends
// when the last of its callers has gone. Calls that were never answered have a
// process replaced in another way (see instance.abandon): stopped first, because it
// is what holds their slots.

// recycleDrain bounds how long a process that was replaced is waited for. Each call
// has a deadline of its own and ends by that; this is for those of hosts that give
// a call more.
const recycleDrain = 10 * time.Minute

// recycleJitter is the part of limits.recycle.calls that is random: plugins of the
// same turns get equally many calls.
const recycleJitter = 0.2

// codeRecycled is the code of the event that tells of a process that was replaced.
const codeRecycled = "recycled"

// replacement is how the plugin's process is replaced while it is well. A plugin
// inside the host has none.
func (in *instance) replacement() supervise.Replacement {
	if in.inProcess() {
		return supervise.Replacement{}
	}
	return supervise.Replacement{
		Age: in.declared.Limits.Recycle.Age.D(), Alone: in.declared.Reload == reloadExclusive,
		// What is down goes before what is replaced. A successor does not wait at the
		// entrance: the one before is not stopped yet.
		Limiter: in.engine.gate.Optional(), Drain: recycleDrain,
	}
}

// inProcess reports whether the plugin runs inside the host: it has no process then.
func (in *instance) inProcess() bool {
	_, local := in.engine.opts.InProcess[in.declared.Name]
	return local
}

// recycleNotes warns of plugins that cannot be recycled.
func (e *Engine) recycleNotes(cfg *config.Config) []phases.Diagnostic {
	var notes []phases.Diagnostic
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		if _, local := e.opts.InProcess[p.Name]; local && p.Limits.Recycle != (config.Recycle{}) {
			notes = append(notes, phases.Diagnostic{
				Code: codeNotEnforced, Severity: phases.SeverityWarning, Plugin: p.Name, Slot: "limits.recycle",
				Message: "the plugin " + p.Name + " runs inside the host: it has no process to recycle",
			})
		}
	}
	return notes
}

// visits counts the callers that are at an incarnation, and the calls that it got.
type visits struct {
	// here are the callers. Once no more may come, closedBy is added to it.
	here atomic.Int64
	// idle is closed when the last one has gone after that.
	idle chan struct{}
	once sync.Once
	// shut is done when no more may come.
	shut sync.Once
	// calls are counted up to most, at which the process is replaced; 0 is never.
	calls, most atomic.Int64
}

// closedBy makes a count negative, however many callers there are.
const closedBy = math.MinInt64 / 2

// newVisits counts for one incarnation of the plugin.
func (in *instance) newVisits() *visits {
	v := &visits{idle: make(chan struct{})}
	random := in.engine.opts.Random
	if random == nil {
		random = rand.Float64
	}
	if n := in.declared.Limits.Recycle.Calls; n > 0 && !in.inProcess() {
		v.most.Store(max(1, int64(n)-int64(recycleJitter*random()*float64(n))))
	}
	return v
}

// enter notes a caller. It fails when the incarnation has been replaced: then there
// is another one.
func (v *visits) enter() bool {
	if v.here.Add(1) > 0 {
		return true
	}
	v.leave()
	return false
}

// leave is told when the caller does not wait any longer.
func (v *visits) leave() {
	if v.here.Add(-1) == closedBy {
		v.once.Do(func() { close(v.idle) }) // who comes too late goes, too
	}
}

// asked counts a call, and has the process replaced when it got enough of them.
func (inc *incarnation) asked() {
	v := inc.visits
	if n := v.most.Load(); n > 0 && v.calls.Add(1) == n {
		inc.in.sup.Replace(inc.number, "it got its share of calls")
	}
}

var _ supervise.Drainer = (*incarnation)(nil)

// Drain implements supervise.Drainer: it waits for the callers that are there.
func (inc *incarnation) Drain(ctx context.Context) {
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

// takeOver puts the incarnation into force that the supervisor has found to be up.
func (in *instance) takeOver(number uint64) {
	inc := in.fresh.Load()
	if inc == nil || inc.number != number {
		return // it has been in force before
	}
	in.fresh.CompareAndSwap(inc, nil)
	in.live.Store(inc)
	select {
	case <-inc.done: // in this moment
		in.live.CompareAndSwap(inc, nil)
	default:
	}
}
