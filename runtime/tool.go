package runtime

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// toolTimeout bounds a tool call whose caller sets no earlier deadline.
const toolTimeout = 60 * time.Second

// CallTool calls a tool of the named plugin, outside any turn.
func (e *Engine) CallTool(ctx context.Context, plugin string, call phases.ToolCall) (*phases.ToolResult, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	return e.callTool(ctx, g, plugin, call)
}

// callTool makes one call of a plugin's tool, by grant, under the plugin's
// concurrency limit.
func (e *Engine) callTool(ctx context.Context, g *generation, plugin string, call phases.ToolCall) (*phases.ToolResult, error) {
	in, ok := g.byName[plugin]
	if !ok {
		return nil, phases.Errorf(phases.CauseUnavailable, "no plugin %q is declared%s", plugin, phases.DidYouMean(plugin, keys(g.byName)))
	}
	if !phases.Allows(in.declared.Grants.Tools, call.Tool) {
		return nil, phases.Errorf(phases.CauseForbidden, "the plugin %s has no grant for the tool %q", plugin, call.Tool)
	}
	if in.live.Load() == nil {
		return nil, in.unavailable()
	}
	caller := ctx
	l := &lease{in: in, slot: !chainOf(ctx).holds(plugin)}
	deadline := time.Now().Add(toolTimeout)
	if callers, ok := caller.Deadline(); ok && callers.Before(deadline) {
		deadline = callers
	}
	call.Remaining = time.Until(deadline)
	toolCtx := e.callContext(caller, plugin, call.Context, deadline)
	defer toolCtx.cancel()
	ctx = toolCtx
	if l.slot {
		if err := in.slots.acquire(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, timeUp(caller)
			}
			return nil, codedError(err) // too many wait already
		}
	}
	inc, failure := in.await(ctx, deadline)
	if failure != nil {
		l.freed()
		return nil, failure
	}
	call.Remaining, call.Generation, call.Incarnation = time.Until(deadline), g.number, inc.number
	call.Room.MaxBytes = frameOf(in.declared)
	res, _, err := inc.peer().CallTool(ctx, &call, l.freed)
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		l.leave(inc)
		return nil, timeUp(caller)
	}
	return nil, inc.explain(ctx, codedError(err))
}
