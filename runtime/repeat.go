package runtime

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// Repeat sends a recorded dispatch or tool call to the plugin of that name again,
// with the recorded context, texts and remaining time, and returns what is answered
// now. It passes by all that is the engine's: plan, conditions, grants, slots,
// breakers, memory, merging, Options.OnExchange. A plugin that is just coming back is
// waited for.
//
// That the plugin fails, or is down, is the Err of the new exchange. The error says
// that x cannot be repeated here: it is of another kind, the plugin is not declared,
// or ctx has ended.
func (e *Engine) Repeat(ctx context.Context, x *Exchange) (*Exchange, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	in, ok := g.byName[x.Plugin]
	switch {
	case !ok:
		return nil, fmt.Errorf("no plugin %q is declared%s", x.Plugin, phases.DidYouMean(x.Plugin, keys(g.byName)))
	case x.Kind == ExchangeDispatch && x.Dispatch != nil, x.Kind == ExchangeTool && x.ToolCall != nil:
	default:
		return nil, fmt.Errorf("an exchange of the kind %q cannot be repeated", x.Kind)
	}
	now := &Exchange{Kind: x.Kind, Plugin: x.Plugin, Generation: g.number, Subscription: x.Subscription, Begin: e.opts.Now()}
	inc, failure := in.upAgain(ctx)
	if failure != nil {
		now.Err = failure
	} else {
		now.Start, now.Incarnation = inc.start, inc.number
		e.repeat(ctx, g, inc, x, now)
		inc.visits.leave()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return now, nil
}

// repeat makes the call.
func (e *Engine) repeat(caller context.Context, g *generation, inc *incarnation, x, now *Exchange) {
	var remaining time.Duration
	at := site{plugin: x.Plugin, scope: newScope(g.cfg.Budgets.Turn, false), subscription: x.Subscription, generation: g.number, incarnation: inc.number}
	if x.Kind == ExchangeDispatch {
		m := *x.Dispatch
		m.Incarnation = inc.number
		now.Dispatch, remaining, at.turn = &m, m.Remaining, m.Context
	} else {
		m := *x.ToolCall
		m.Incarnation = inc.number
		now.ToolCall, remaining, at.turn = &m, m.Remaining, m.Context
	}
	begin := time.Now()
	ctx := e.callContext(caller, at, begin.Add(cmp.Or(remaining, config.DefaultTool)))
	defer ctx.cancel()
	l := &lease{in: inc.in}
	var err error
	if x.Kind == ExchangeDispatch {
		now.Result, _, err = inc.peer().Dispatch(ctx, now.Dispatch, l.freed)
	} else {
		now.ToolResult, _, err = inc.peer().CallTool(ctx, now.ToolCall, l.freed)
	}
	now.Took = time.Since(begin)
	switch {
	case err == nil:
		return
	case ctx.Err() != nil:
		l.leave(inc)
		now.Err = timeUp(caller)
	default:
		now.Err = inc.explain(ctx, codedError(err))
	}
	now.Result, now.ToolResult = nil, nil
}

// upAgain returns the incarnation that takes calls; who has made its call tells it
// (visits.leave). A plugin that is waiting for its next start is waited for, for one
// start: also one that has just died, which nobody may have noticed yet.
func (in *instance) upAgain(ctx context.Context) (*incarnation, *phases.Error) {
	bounded, cancel := context.WithTimeout(ctx, startTimeout(in.declared))
	defer cancel()
	for {
		news := in.changes()
		inc := in.live.Load()
		if inc != nil && !inc.dead() && inc.visits.enter() {
			return inc, nil
		}
		if s := in.sup.Status().State; s == supervise.StateQuarantined || s == supervise.StateStopped {
			return nil, in.unavailable()
		}
		if inc != in.live.Load() {
			continue // its successor is there by now
		}
		select {
		case <-news:
		case <-bounded.Done():
			return nil, in.unavailable()
		}
	}
}

// dead reports whether the process has ended.
func (inc *incarnation) dead() bool {
	if inc.process == nil {
		return false
	}
	select {
	case <-inc.process.Done():
		return true
	default:
		return false
	}
}
