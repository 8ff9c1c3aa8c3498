package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Replay sends a recorded dispatch or tool call to the plugin of that name again, with the recorded context, texts
// and remaining time, and returns the answer of now. It bypasses plan, conditions, grants, slots, breakers, caches,
// merging and Options.OnExchange, and waits for a plugin that is coming back. If the plugin fails, the new exchange
// has an Err; the error says that x cannot be replayed here, or that ctx has ended.
func (e *Engine) Replay(ctx context.Context, x *Exchange) (*Exchange, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	in, ok := g.byName[x.Plugin]
	if !ok {
		return nil, errors.New(g.undeclared(x.Plugin))
	}
	r := &replayed{now: &Exchange{Kind: x.Kind, Plugin: x.Plugin, Generation: g.number, Subscription: x.Subscription, Begin: e.opts.Now()}}
	at := site{plugin: x.Plugin, state: g.outside(), subscription: x.Subscription, generation: g.number}
	var timeout time.Duration
	switch {
	case x.Kind == ExchangeDispatch && x.Dispatch != nil:
		m := *x.Dispatch
		r.now.Dispatch, at.turn, timeout = &m, m.Context, m.Remaining
	case x.Kind == ExchangeTool && x.ToolCall != nil:
		m := *x.ToolCall
		r.now.ToolCall, at.turn, timeout = &m, m.Context, m.Remaining
	default:
		return nil, fmt.Errorf("an exchange of the kind %q cannot be replayed", x.Kind)
	}
	timeout = cmp.Or(timeout, config.DefaultTool)
	i := &invocation{
		frame: r, in: in, run: &phases.Run{}, timeout: timeout, until: time.Now().Add(pool.StartTimeout(&in.Declared) + timeout), replay: true,
	}
	i.call.Site = at
	r.now.Err = e.invoke(ctx, i)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if r.now.Err != nil {
		r.now.Result, r.now.ToolResult = nil, nil
	}
	return r.now, nil
}

type replayed struct {
	now   *Exchange
	inc   *pool.Incarnation
	lease *pool.Lease
}

var _ frame = (*replayed)(nil)

func (r *replayed) send(_ context.Context, inc *pool.Incarnation, _ time.Duration, l *pool.Lease) {
	r.inc, r.lease = inc, l
}

// wait implements frame, with the recorded remaining time.
func (r *replayed) wait(ctx context.Context) (stats wire.Stats, err error) {
	x := r.now
	x.Start, x.Incarnation = r.inc.Start, r.inc.Number
	begin := time.Now()
	defer func() { x.TookMS = milliseconds(time.Since(begin)) }()
	if x.Dispatch != nil {
		x.Dispatch.Incarnation = r.inc.Number
		x.Result = &phases.Result{}
		stats, err = r.inc.Send(ctx, x.Dispatch, r.lease).Answer(ctx, x.Result)
	} else {
		x.ToolCall.Incarnation = r.inc.Number
		x.ToolResult, stats, err = r.inc.CallTool(ctx, x.ToolCall, r.lease)
	}
	return stats, err
}

// show implements frame: a replay is not recorded.
func (r *replayed) show(*Exchange) {}

// admit implements frame: nothing is checked.
func (r *replayed) admit(*pool.Incarnation) *phases.Error { return nil }

func (r *replayed) timeUp(caller context.Context, _ bool) *phases.Error {
	return bounded.TimeUp(caller)
}
