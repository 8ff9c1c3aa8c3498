package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// Released is what became of a plugin that was given another chance.
type Released struct {
	Plugin string `json:"plugin"`
	// From is the state that it was released from, State the one that it has now:
	// ready or degraded; "backoff" or "quarantined" if it has failed again; starting
	// if nobody waited for longer.
	From  phases.PluginState `json:"from"`
	State phases.PluginState `json:"state"`
	// Code and Detail say why it is in State; both are empty for a plugin that is
	// well.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Breakers are the subscriptions whose breakers were closed.
	Breakers []string `json:"breakers" jsonschema:"subscriptions whose breakers were closed"`
}

// Up reports whether the plugin takes calls.
func (r *Released) Up() bool {
	return r.State == phases.PluginReady || r.State == phases.PluginDegraded
}

// ReleaseError says why there is nothing to release.
type ReleaseError struct {
	// Unknown is set where there is no such plugin.
	Unknown bool
	Message string
}

// Error implements error.
func (e *ReleaseError) Error() string { return e.Message }

// releaseSlack is how long a release waits beyond the time of a start: for the slot
// of the start before, and the end of what has failed.
const releaseSlack = 5 * time.Second

// Release gives a plugin that is in quarantine, or waits for its next start,
// another chance at once, with its failures forgotten, and closes the breakers of
// its subscriptions: what they count is of the time before. A plugin that takes
// calls is released from its breakers alone. It waits until the start has gone well
// or failed, as long as ctx and the time of a start allow, and says which: another
// failure is no error. A [*ReleaseError] is for a plugin that is not declared, and
// for one that there is nothing to release from.
func (e *Engine) Release(ctx context.Context, plugin string) (*Released, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	in, ok := g.byName[plugin]
	if !ok {
		return nil, &ReleaseError{true, fmt.Sprintf("no plugin %q is declared%s", plugin, phases.DidYouMean(plugin, keys(g.byName)))}
	}
	before := in.sup.Status()
	r := &Released{Plugin: plugin, From: phases.PluginState(before.State.String())}
	started := in.sup.Release()
	if started || before.State.Up() {
		r.Breakers = g.closeBreakers(in)
	}
	if !started && len(r.Breakers) == 0 {
		return nil, &ReleaseError{Message: fmt.Sprintf("the plugin %s is %s, and none of its breakers is open: there is nothing to release it from", plugin, before.State)}
	}
	now := before
	if started {
		now = in.awaitStart(ctx, before.Incarnation)
	}
	r.State, r.Code, r.Detail = phases.PluginState(now.State.String()), now.Code, now.Detail
	if r.Breakers == nil {
		r.Breakers = []string{}
	}
	return r, nil
}

// closeBreakers closes the breakers of a plugin's subscriptions and names those that
// were not closed.
func (g *generation) closeBreakers(in *instance) []string {
	var closed []string
	for id, h := range g.planned.Load().hooks {
		if h.in == in && h.breaker.Reset() {
			closed = append(closed, id)
		}
	}
	slices.Sort(closed)
	return closed
}

// awaitStart waits until the start after an incarnation has gone well or failed, or
// took too long, and returns the state then.
func (in *instance) awaitStart(ctx context.Context, before uint64) supervise.Status {
	ctx, cancel := context.WithTimeout(ctx, startTimeout(in.declared)+releaseSlack)
	defer cancel()
	for {
		news := in.changes()
		st := in.sup.Status()
		switch {
		case st.State == supervise.StateStopped:
			return st
		case st.Incarnation > before && st.State != supervise.StateStarting && st.State != supervise.StateDraining:
			return st
		}
		select {
		case <-news:
		case <-ctx.Done():
			return in.sup.Status()
		}
	}
}
