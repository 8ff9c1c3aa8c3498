package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// endsAtOnce is how many turns are ended at the same time.
const endsAtOnce = 16

// leaving is a turn on its way out, with what is told of it.
type leaving struct {
	turn *keptTurn
	told endedTurn
}

// sweep ends turns that are idle, until ctx ends.
func (g *Gateway) sweep(ctx context.Context) {
	timer := time.NewTimer(g.turns.idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		idle, next := g.turns.takeIdle(time.Now())
		g.tellEnded(idle)
		g.endAll(ctx, idle)
		timer.Reset(next)
	}
}

// takeIdle detaches the turns that have been idle for too long, and says how long it
// takes at least until there is another one.
func (t *turnTable) takeIdle(now time.Time) (idle []leaving, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next = t.idle // of one that begins now
	for _, k := range t.open {
		if len(k.calls) > 0 {
			continue // its time begins when they have returned
		}
		left := t.idle - now.Sub(k.used)
		if left > 0 {
			next = min(next, left)
			continue
		}
		idle = append(idle, leaving{k, t.detach(k, endIdle)})
	}
	return idle, next
}

// stop lets no turn begin any more, and detaches all.
func (t *turnTable) stop() []leaving {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	all := make([]leaving, 0, len(t.open))
	for _, k := range t.open {
		all = append(all, leaving{k, t.detach(k, endStopping)})
	}
	return all
}

// tellEnded logs and counts turns that their clients did not end, and notifies those
// connections of their tokens that have used them, or watch their workspaces.
func (g *Gateway) tellEnded(list []leaving) {
	slices.SortFunc(list, func(a, b leaving) int { return cmp.Compare(a.told.Handle, b.told.Handle) })
	for _, l := range list {
		e := &l.told
		g.metrics.turnEnded(e.Reason)
		g.opts.Logger.Info("a turn that its client did not end was ended", slog.String("workspace", e.WorkspaceID),
			slog.String("thread", e.ThreadID), slog.String("turn", e.TurnID), slog.String("reason", e.words()))
		for c := range g.hearers(l.turn) {
			c.Notify("", NotifyTurn, e.TurnEnded)
		}
	}
}

// hearers are the connections that are told of the end of a turn.
func (g *Gateway) hearers(k *keptTurn) map[conn]struct{} {
	all := g.hub.watching(k.context.WorkspaceID, k.token)
	g.turns.mu.Lock()
	defer g.turns.mu.Unlock()
	for c := range k.conns {
		all[c] = struct{}{}
	}
	return all
}

// watching are the connections of a token that watch a workspace.
func (h *hub) watching(workspace, token string) map[conn]struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := map[conn]struct{}{}
	for c := range h.rooms[workspace] {
		if c.Caller().Name == token {
			found[c] = struct{}{}
		}
	}
	return found
}

// endAll ends turns as interrupted ones: the hooks of turn.post_turn run.
func (g *Gateway) endAll(ctx context.Context, list []leaving) {
	var running sync.WaitGroup
	slots := make(chan struct{}, endsAtOnce)
	for _, l := range list {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if _, err := g.turns.finish(ctx, l.turn, &phases.PostTurnInput{Status: phases.TurnInterrupted}); err != nil {
				g.opts.Logger.Warn("the end of a turn failed", slog.String("turn", l.told.TurnID), slog.Any("error", err))
			}
		})
	}
	running.Wait()
}
