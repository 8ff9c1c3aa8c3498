package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// CallTool calls a tool of the named plugin, outside any turn: what a turn has
// brought in, or hides, does not matter, and the call is told as an [EventRun]
// and kept nowhere. The plugin is told so (OutsideTurn) and sees no policies. It
// takes no longer than the plugin's limits.tool and ctx allow. An error is a
// *[phases.Error]; a tool that tells the model of a failure is none (IsError). The
// call's context and idempotency key have the bounds of [phases.CheckContext].
func (e *Engine) CallTool(ctx context.Context, plugin string, call phases.ToolCall) (*phases.ToolResult, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	if err := phases.CheckContext(&call.Context); err != nil {
		return nil, err
	}
	if err := phases.CheckID("idempotency_key", call.IdempotencyKey); err != nil {
		return nil, err
	}
	call.OutsideTurn, call.Policies = true, nil
	res, _, err := e.callTool(ctx, g, newScope(g.cfg.Budgets.Turn, false), plugin, call)
	return res, err
}

// callTool makes one call of a plugin's tool and tells of it. The run is its row
// of the ledger, whatever became of it.
func (e *Engine) callTool(ctx context.Context, g *generation, s *scope, plugin string, call phases.ToolCall) (*phases.ToolResult, phases.Run, error) {
	c := &toolCall{engine: e, gen: g, scope: s, call: call, run: newToolRun(g, plugin, call.Tool)}
	res, err := c.do(ctx, plugin)
	return res, c.run, err
}

// do makes the call and tells of it.
func (c *toolCall) do(ctx context.Context, plugin string) (*phases.ToolResult, error) {
	c.span.trace = c.call.Trace
	res, failure := c.perform(ctx, plugin)
	if failure != nil { // one error may be that of several calls
		own := *failure
		own.Visibility, failure = toolVisibility, &own
	}
	c.span.done()
	c.engine.settleTool(ctx, &c.span, &c.run, res, failure)
	if failure != nil {
		return nil, failure
	}
	return res, nil
}

// toolCall is one call of a tool on its way.
type toolCall struct {
	engine *Engine
	gen    *generation
	scope  *scope
	in     *instance
	call   phases.ToolCall
	run    phases.Run
	// span is the call's place in the trace of the host, or of who queued it.
	span span
	// once is told before the plugin is, by nil for most; see attempting.
	once func(ctx context.Context) *phases.Error
	// limit is the operator's; deadline is when the call ends, by the limit or the
	// caller.
	limit    time.Duration
	deadline time.Time
}

// newToolRun is the ledger's row of a tool call before anything happened. The
// name may be made up by a model: what is no text does not get into a record.
func newToolRun(g *generation, plugin, tool string) phases.Run {
	name := text.Head(text.Repair(tool), phases.MaxIDBytes)
	run := phases.Run{
		Subscription: name, Hook: name, Plugin: plugin, Generation: g.number, Phase: phases.PhaseToolCall, Stage: phases.StageTool,
		Contributions: []string{}, Cut: []phases.Cut{},
	}
	if plugin != "" {
		run.Subscription = plugin + "." + name
	}
	return run
}

// settleTool writes down what became of a call, in the words of hooks, and tells
// of it. The span is nil for one that was not begun.
func (e *Engine) settleTool(ctx context.Context, s *span, run *phases.Run, res *phases.ToolResult, failure *phases.Error) {
	switch {
	case failure != nil:
		c := call{run: run}
		c.fail(failure)
	case res.IsError:
		run.State, run.Code = phases.StateSucceeded, phases.CodeToolError
	default:
		run.State = phases.StateSucceeded
	}
	if s == nil {
		s = &span{}
	}
	told := *run
	e.tell(ctx, s, &told, failure)
}

// perform makes the call: may the plugin answer it, is there a slot, is the
// plugin there, what is the answer.
func (c *toolCall) perform(caller context.Context, plugin string) (*phases.ToolResult, *phases.Error) {
	if failure := c.prepare(caller, plugin); failure != nil {
		return nil, failure
	}
	c.run.Attempts = 1
	if c.in.live.Load() == nil {
		return nil, c.in.unavailable()
	}
	within, begun := c.engine.beginRun(caller, c.call.Trace, &c.run)
	c.span, c.call.Trace = begun, begun.trace
	ctx := c.engine.callContext(within, site{
		plugin: plugin, turn: c.call.Context, scope: c.scope, subscription: c.run.Subscription, generation: c.gen.number,
	}, c.deadline)
	defer ctx.cancel()
	l, failure := c.lease(ctx, caller)
	if failure != nil {
		return nil, failure
	}
	inc, failure := c.in.await(ctx, c.deadline)
	if failure != nil {
		l.freed()
		if ctx.Err() != nil {
			failure = c.timeUp(caller)
		}
		return nil, failure
	}
	defer inc.visits.leave()
	if ctx.Err() != nil { // nobody waits for what would be done
		l.freed()
		return nil, c.timeUp(caller)
	}
	if c.once != nil {
		if failure := c.once(caller); failure != nil {
			l.freed()
			return nil, failure
		}
	}
	ctx.incarnation, ctx.exchange = inc.number, inc.beginExchange(ExchangeTool, c.gen.number, c.run.Subscription)
	return c.ask(ctx, caller, inc, l)
}

// prepare finds the plugin, checks what the operator allows, and sets the time.
func (c *toolCall) prepare(caller context.Context, plugin string) *phases.Error {
	in, ok := c.gen.byName[plugin]
	switch {
	case !ok && c.call.Tool == phases.RequestTools:
		return refusedTool("%s is answered by a turn (Turn.CallTool); without one, name the domains in CompileInput.Prompt.RequestedDomains", phases.RequestTools)
	case !ok:
		return phases.Errorf(phases.CauseUnavailable, "no plugin %q is declared%s", plugin, phases.DidYouMean(plugin, keys(c.gen.byName)))
	}
	c.in = in
	if d := in.description(); d != nil {
		c.run.PluginVersion = d.Version
	}
	grants := &in.declared.Grants
	frame := frameOf(in.declared)
	switch {
	case !phases.Allows(grants.Tools, c.call.Tool):
		return phases.Errorf(phases.CauseForbidden, "the plugin %s has no grant for the tool %q", plugin, c.call.Tool)
	case len(c.call.Arguments) > frame:
		return phases.Errorf(phases.CauseOversizeRequest, "the arguments of the tool %q have %d bytes; the plugin %s takes %d (limits.frame)",
			c.call.Tool, len(c.call.Arguments), plugin, frame)
	}
	if !phases.Allows(grants.See, "metadata") {
		c.call.Context.Metadata = nil
	}
	if !phases.Allows(grants.See, "policy") {
		c.call.Policies = nil
	}
	c.limit = toolTimeout(in.declared)
	c.deadline = time.Now().Add(c.limit)
	if callers, ok := caller.Deadline(); ok && callers.Before(c.deadline) {
		c.deadline = callers
	}
	return nil
}

// toolVisibility is that of the words of tools, which have no subscription: what
// their author calls safe is for whoever gets their answers.
const toolVisibility = phases.VisibilityUserVisible

// toolTimeout is the longest that a call of one of the plugin's tools takes.
func toolTimeout(p config.Plugin) time.Duration {
	return cmp.Or(p.Limits.Tool.D(), config.DefaultTool)
}

// lease waits for a slot of the plugin, on the call's time. A plugin that is on
// the call chain already has one.
func (c *toolCall) lease(ctx, caller context.Context) (*lease, *phases.Error) {
	l := &lease{in: c.in, slot: !chainOf(caller).holds(c.in.declared.Name)}
	if !l.slot {
		return l, nil
	}
	begin := time.Now()
	err := c.in.slots.acquire(ctx)
	c.run.QueueMS = millis(time.Since(begin))
	switch {
	case err == nil:
		return l, nil
	case ctx.Err() != nil:
		return nil, c.timeUp(caller)
	}
	return nil, codedError(err) // too many wait already
}

// ask sends the call and waits for its answer or its end.
func (c *toolCall) ask(ctx, caller context.Context, inc *incarnation, l *lease) (*phases.ToolResult, *phases.Error) {
	begin := time.Now()
	frame := frameOf(c.in.declared)
	c.call.Remaining, c.call.Generation, c.call.Incarnation = time.Until(c.deadline), c.gen.number, inc.number
	c.call.Room.MaxBytes = frame
	c.run.Incarnation = inc.number
	inc.asked()
	res, stats, err := inc.peer().CallTool(ctx, &c.call, l.freed)
	c.run.DurationMS = millis(time.Since(begin))
	c.run.BytesIn, c.run.BytesOut = stats.BytesIn, stats.BytesOut
	var failure *phases.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		l.leave(inc)
		failure = c.timeUp(caller)
	default:
		failure = inc.explain(ctx, codedError(err))
	}
	chainOf(ctx).exchange.called(&c.call, res, failure)
	if failure != nil {
		return nil, failure
	}
	c.stamp(res)
	c.engine.logRemarks(c.run.Subscription, res.Diagnostics)
	if inc.local != nil {
		return res, c.checkLocal(res, frame)
	}
	return res, nil
}

// stamp says whose the remarks of an answer are, which cannot be forged, and takes
// the plugin's secrets out of them. They are copied: those of a plugin inside the
// host may be its own.
func (c *toolCall) stamp(res *phases.ToolResult) {
	res.Diagnostics = slices.Clone(res.Diagnostics)
	for i := range res.Diagnostics {
		d := res.Diagnostics[i].Remark(toolVisibility)
		d.Plugin, d.Subscription = c.in.declared.Name, c.run.Subscription
		res.Diagnostics[i] = d
	}
	c.in.redactor.notes(res.Diagnostics)
}

// checkLocal holds the answer of a plugin inside the host to what the wire asks of
// the others. What is too large is refused: results are never cut.
func (c *toolCall) checkLocal(res *phases.ToolResult, frame int) *phases.Error {
	name := c.in.declared.Name
	if len(res.Content) > frame {
		return phases.Errorf(phases.CauseOversizeReply, "the answer of the tool %q of the plugin %s has %d bytes; at most %d are taken (limits.frame)",
			c.call.Tool, name, len(res.Content), frame)
	}
	if len(res.Content) == 0 {
		return nil
	}
	if err := phases.CheckJSON(res.Content, phases.MaxJSONDepth); err != nil {
		return phases.Errorf(phases.CauseInvalidReply, "the answer of the tool %q of the plugin %s %w", c.call.Tool, name, err)
	}
	return nil
}

// timeUp says why the call was left: its caller has gone, has no more time, or
// the time of its plugin was over.
func (c *toolCall) timeUp(caller context.Context) *phases.Error {
	failure := timeUp(caller)
	if failure.Code != phases.CauseTimeout {
		return failure
	}
	whose := "within " + c.limit.String() + " (limits.tool)"
	if callers, ok := caller.Deadline(); ok && !callers.After(c.deadline) {
		whose = "before its caller's deadline"
	}
	return phases.Errorf(phases.CauseTimeout, "the tool %q of the plugin %s has not answered %s", c.call.Tool, c.in.declared.Name, whose)
}
