package runtime

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// await returns the incarnation that takes calls; who has made its call tells it
// (visits.leave). A plugin that is just being
// replaced (recycled, because it did not answer) is waited for until the given
// time: the calls that waited for its slots would otherwise fail all at once. In
// any other state that takes no calls the answer is immediate.
func (in *instance) await(ctx context.Context, until time.Time) (*incarnation, *phases.Error) {
	for {
		news := in.changes()
		if inc := in.live.Load(); inc != nil {
			if inc.visits.enter() {
				return inc, nil
			}
			continue // its successor is there by now
		}
		if s := in.sup.Status().State; s != supervise.StateDraining && s != supervise.StateStarting && !s.Up() {
			return nil, in.unavailable()
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-news:
		case <-timer.C:
			return nil, in.unavailable()
		case <-ctx.Done():
			timer.Stop()
			return nil, timeUp(ctx)
		}
		timer.Stop()
	}
}

// changes returns a channel that is closed at the next change of state.
func (in *instance) changes() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.news
}

// signal wakes those who wait for a change of state.
func (in *instance) signal() {
	in.mu.Lock()
	defer in.mu.Unlock()
	close(in.news)
	in.news = make(chan struct{})
}
