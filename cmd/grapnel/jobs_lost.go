package main

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// jobLost is the state of a job that an engine without a store gives up at its end.
const jobLost = "lost"

// lostWork counts the background work that a command gives up at its end.
type lostWork struct{ n atomic.Int64 }

// countLost counts it, unless there is a queue that keeps it.
func countLost(o *runtime.Options) *lostWork {
	l, others := &lostWork{}, o.OnEvent
	if o.Queue != nil {
		return l
	}
	o.OnEvent = func(ev runtime.Event) {
		if ev.Kind == runtime.EventJob && (ev.State == jobLost || ev.Code == string(phases.CauseInterrupted)) {
			l.n.Add(1)
		}
		if others != nil {
			others(ev)
		}
	}
	return l
}

// tell says how much was lost, when the engine is closed.
func (l *lostWork) tell(w io.Writer) {
	if n := int(l.n.Load()); n > 0 {
		tellf(w, "grapnel: %s in the background %s not finished within %s, and %s lost\n",
			fmt.Sprintf("%d %s", n, plural(n, "piece of work", "pieces of work")), plural(n, "was", "were"), closeTime, plural(n, "is", "are"))
	}
}
