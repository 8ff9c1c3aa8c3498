package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/phases"
)

// errTurnEnded is returned by calls on a turn that has ended.
var errTurnEnded = errors.New("the turn has ended")

// Turn is one turn of a host.
//
//  1. Engine.BeginTurn makes it; it keeps the configuration of that moment.
//  2. Call its phases as the host's loop comes by them: PrePolicy,
//     PrePromptContext, PostPreflight, PreTools, Compile, ToolPreCall,
//     ToolPostCall, PreCompaction, PostCompaction. Each may be left out. What they
//     bring (policies, contexts, tools, time used) is carried on by the turn.
//  3. End it. End may be called twice; a turn that is never ended keeps its
//     configuration from being dropped.
//
// Tool phases may run concurrently; other phases wait for each other. The
// error of a phase is a *PhaseError when the phase failed closed; the outcome is
// there all the same.
type Turn struct {
	engine  *Engine
	gen     *generation
	context phases.Context
	scope   *scope

	serial sync.Mutex
	calls  atomic.Uint64
	ended  atomic.Bool
}

// BeginTurn begins a turn. Fields of t that are empty are unknown; Now is the
// engine's clock if zero.
func (e *Engine) BeginTurn(_ context.Context, t phases.Turn) (*Turn, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	if t.Now.IsZero() {
		t.Now = e.opts.Now()
	}
	return &Turn{engine: e, gen: g, context: t.Clone(), scope: newScope(g.cfg.Budgets.Turn)}, nil
}

// Context returns the turn's context.
func (t *Turn) Context() phases.Context { return t.context.Clone() }

// Dispatch runs any phase in this turn: a host's own, or one whose input is only
// known at run time. The typed methods do the same.
func (t *Turn) Dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error) {
	if t.ended.Load() {
		return nil, errTurnEnded
	}
	return t.dispatch(ctx, in)
}

func (t *Turn) dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error) {
	switch in.Phase() {
	case phases.ToolPreCall, phases.ToolPostCall:
	default:
		t.serial.Lock()
		defer t.serial.Unlock()
	}
	return t.engine.dispatch(ctx, t.gen, request{context: t.context, input: in, scope: t.scope, key: t.key(in.Phase())})
}

// key makes calls of one phase of one turn repeatable: the same turn id gives
// the same keys in the same order of calls.
func (t *Turn) key(p phases.Phase) string {
	if t.context.TurnID == "" {
		return ""
	}
	n := t.calls.Add(1)
	return fmt.Sprintf("%s/%s/%s/%s/%d", t.context.WorkspaceID, t.context.ThreadID, t.context.TurnID, p, n)
}

// PrePolicy dispatches turn.pre_policy.
func (t *Turn) PrePolicy(ctx context.Context, in *phases.PrePolicyInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// PrePromptContext dispatches turn.pre_prompt_context.
func (t *Turn) PrePromptContext(ctx context.Context, in *phases.PrePromptContextInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// PostPreflight dispatches turn.post_preflight_prompt_context.
func (t *Turn) PostPreflight(ctx context.Context, in *phases.PostPreflightInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// PreTools dispatches turn.pre_tool_materialization.
func (t *Turn) PreTools(ctx context.Context, in *phases.PreToolsInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// RuntimePreContext dispatches runtime.turn_pre_context.
func (t *Turn) RuntimePreContext(ctx context.Context, in *phases.RuntimePreContextInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// ToolPreCall dispatches tool.pre_call. The outcome's Rewritten holds the
// arguments to go on with.
func (t *Turn) ToolPreCall(ctx context.Context, in *phases.ToolPreCallInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// ToolPostCall dispatches tool.post_call. The outcome's Rewritten holds the
// result to go on with.
func (t *Turn) ToolPostCall(ctx context.Context, in *phases.ToolPostCallInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// PreCompaction dispatches turn.pre_compaction.
func (t *Turn) PreCompaction(ctx context.Context, in *phases.PreCompactionInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// PostCompaction dispatches turn.post_compaction.
func (t *Turn) PostCompaction(ctx context.Context, in *phases.PostCompactionInput) (*phases.Outcome, error) {
	return t.Dispatch(ctx, in)
}

// End ends the turn: it dispatches turn.post_turn, whose hooks run in the
// background, and lets go of the configuration. The input is cut to the phase's
// bounds. A second call does nothing and returns nil.
func (t *Turn) End(ctx context.Context, in *phases.PostTurnInput) (*phases.Outcome, error) {
	if t.ended.Swap(true) {
		return nil, nil
	}
	defer t.gen.leave()
	return t.dispatch(ctx, in.Bounded())
}

// CallTool calls a tool of a plugin that this turn's tool bundles brought in.
func (t *Turn) CallTool(ctx context.Context, call phases.ToolCall) (*phases.ToolResult, error) {
	if t.ended.Load() {
		return nil, errTurnEnded
	}
	owner, ok := t.scope.toolOwner(call.Tool)
	if !ok {
		return nil, phases.Errorf(phases.CauseForbidden, "no plugin has brought a tool %q into this turn", call.Tool)
	}
	call.Context = t.context
	return t.engine.callTool(ctx, t.gen, owner, call)
}
