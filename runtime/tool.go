package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

type toolCall struct {
	engine *invoker
	gen    *generation
	state  *turnstate.State
	in     *pool.Instance
	call   phases.ToolCall
	run    phases.Run
	// span is the call's place in the trace of the host, or of the turn that queued it.
	span span
	// once, if set, runs right before the plugin is called; see background.Attempt.
	once func(ctx context.Context) *phases.Error
	// limit is the operator's; deadline is when the call ends, by limit or caller.
	limit    time.Duration
	deadline time.Time
	inc      *pool.Incarnation
	lease    *pool.Lease
	answer   *phases.ToolResult
}

// callTool makes and reports one call of a plugin's tool. The run is its row of the ledger.
func (e *invoker) callTool(ctx context.Context, g *generation, s *turnstate.State, plugin string, call phases.ToolCall, prompt *phases.DecisionRef) (*phases.ToolResult, phases.Run, error) {
	c := &toolCall{engine: e, gen: g, state: s, call: call, run: newToolRun(g, plugin, call.Tool)}
	c.run.DecisionRef = prompt
	res, err := c.do(ctx, plugin)
	return res, c.run, err
}

func (c *toolCall) do(ctx context.Context, plugin string) (*phases.ToolResult, error) {
	c.span.trace = c.call.Trace
	res, failure := c.perform(ctx, plugin)
	if failure != nil { // several calls may share one error
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

// newToolRun is the ledger's row of a tool call before anything happened. A model may have made up the name.
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

// settleTool settles and reports the row of a call. The span is nil for a call that has not begun.
func (e *core) settleTool(ctx context.Context, s *span, run *phases.Run, res *phases.ToolResult, failure *phases.Error) {
	switch {
	case failure != nil:
		failRun(run, failure)
	case res.IsError:
		run.State, run.Code = phases.StateSucceeded, phases.CodeToolError
	default:
		run.State = phases.StateSucceeded
	}
	if s == nil {
		s = &span{}
	}
	row := *run
	e.report(ctx, s, &row, failure)
}

func (c *toolCall) perform(caller context.Context, plugin string) (*phases.ToolResult, *phases.Error) {
	if failure := c.prepare(caller, plugin); failure != nil {
		return nil, failure
	}
	c.run.Attempts = 1
	i := &invocation{frame: c, in: c.in, run: &c.run, kind: ExchangeTool, once: c.once, timeout: c.limit, until: c.deadline}
	i.call.Site = site{plugin: plugin, turn: c.call.Context, state: c.state, subscription: c.run.Subscription, generation: c.gen.number}
	if failure := refusal(c.in, nil, ""); failure != nil {
		return nil, failure
	}
	ctx, begun := c.engine.beginRun(caller, c.call.Trace, &c.run)
	c.span, c.call.Trace = begun, begun.trace
	if failure := c.engine.invoke(ctx, i); failure != nil {
		return nil, failure
	}
	return c.answer, nil
}

// prepare finds the plugin, checks its grants, and sets the deadline.
func (c *toolCall) prepare(caller context.Context, plugin string) *phases.Error {
	in, ok := c.gen.byName[plugin]
	switch {
	case !ok && c.call.Tool == phases.RequestTools:
		return turnstate.RefusedTool("%s is answered by a turn (Turn.CallTool); without one, name the domains in CompileInput.RequestedDomains", phases.RequestTools)
	case !ok:
		return phases.Errorf(phases.CauseUnavailable, "%s", c.gen.undeclared(plugin))
	}
	c.in = in
	if d := in.Description(); d != nil {
		c.run.PluginVersion = d.Version
	}
	grants := &in.Declared.Grants
	frame := pool.FrameSize(&in.Declared)
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
	c.limit = cmp.Or(in.Declared.Limits.Tool.D(), config.DefaultTool)
	c.deadline = time.Now().Add(c.limit)
	if callers, ok := caller.Deadline(); ok && callers.Before(c.deadline) {
		c.deadline = callers
	}
	return nil
}

// toolVisibility applies to the words of tools, which have no subscription.
const toolVisibility = phases.VisibilityUserVisible

var _ frame = (*toolCall)(nil)

func (c *toolCall) send(_ context.Context, inc *pool.Incarnation, remaining time.Duration, l *pool.Lease) {
	c.call.Remaining, c.call.Generation, c.call.Incarnation = remaining, c.gen.number, inc.Number
	c.call.Budget.MaxBytes = pool.FrameSize(&c.in.Declared)
	c.inc, c.lease = inc, l
}

func (c *toolCall) wait(ctx context.Context) (stats wire.Stats, err error) {
	c.answer, stats, err = c.inc.CallTool(ctx, &c.call, c.lease)
	return stats, err
}

func (c *toolCall) show(x *Exchange) { x.ToolCall, x.ToolResult = &c.call, c.answer }

func (c *toolCall) admit(*pool.Incarnation) *phases.Error {
	c.stamp(c.answer)
	c.engine.logRemarks(c.run.Subscription, c.answer.Diagnostics)
	return nil
}

// stamp marks the diagnostics of an answer as the plugin's and redacts them, in a copy: those of a plugin inside the
// host may be its own.
func (c *toolCall) stamp(res *phases.ToolResult) {
	res.Diagnostics = slices.Clone(res.Diagnostics)
	for i := range res.Diagnostics {
		d := res.Diagnostics[i].Remark(toolVisibility)
		d.Plugin, d.Subscription = c.in.Declared.Name, c.run.Subscription
		res.Diagnostics[i] = d
	}
	c.in.Redact(res.Diagnostics)
}

func (c *toolCall) timeUp(caller context.Context, _ bool) *phases.Error {
	failure := bounded.TimeUp(caller)
	if failure.Code != phases.CauseTimeout {
		return failure
	}
	whose := "within " + c.limit.String() + " (limits.tool)"
	if callers, ok := caller.Deadline(); ok && !callers.After(c.deadline) {
		whose = "before its caller's deadline"
	}
	return phases.Errorf(phases.CauseTimeout, "the tool %q of the plugin %s has not answered %s", c.call.Tool, c.in.Declared.Name, whose)
}
