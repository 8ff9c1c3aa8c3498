package runtime

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// ErrTurnEnded is returned by calls on a turn that has ended.
var ErrTurnEnded = errors.New("the turn has ended")

// endTime bounds the end of a turn or session, whose caller may be gone.
const endTime = 2 * time.Second

// Turn is one turn of a host.
//
//  1. Engine.BeginTurn makes it; it keeps the configuration of that moment.
//  2. Call its phases as the host's loop comes by them: PrePolicy,
//     PrePromptContext, PostPreflight, PreTools, Compile, ToolPreCall,
//     ToolPostCall, PreCompaction, PostCompaction. Each may be left out. What they
//     bring (policies, contexts, tools, time used) is carried on by the turn.
//     CallTool makes the calls that the model asks for, between ToolPreCall and
//     ToolPostCall where the host has those. Round does all up to the prompt, for
//     hosts that leave the order to the engine.
//  3. End it, once all its calls have returned. End may be called twice. A turn
//     that is not ended keeps its configuration and plugins for a minute after a
//     reload, and no longer.
//
// Tool phases may run concurrently; other phases wait for each other. The
// error of a phase is a *PhaseError when the phase failed closed; the outcome is
// there all the same. After the engine was closed all calls fail with ErrClosed.
type Turn struct {
	engine  *Engine
	gen     *generation
	context phases.Context
	scope   *scope
	usage   turnUsage

	// serial is held by phases other than those of tools.
	serial sync.Mutex

	mu sync.Mutex
	// users are the calls on their way, and the turn itself until it is ended.
	users int
	ended bool
	// calls counts the dispatches of each phase, for idempotency keys.
	calls map[phases.Phase]int
	// last is what End gave.
	last *phases.Outcome
	// ofSession says that the engine knows how the turn's session began.
	ofSession bool
}

// BeginTurn begins a turn. Fields of t that are empty are unknown; Now is the
// engine's clock if zero. A context that [phases.CheckContext] refuses begins no turn. A turn of a session begins with the contexts that the
// session's start or resume brought, and with the hidden tools that were asked for
// in the session's epoch.
func (e *Engine) BeginTurn(_ context.Context, t phases.Turn) (*Turn, error) {
	if err := checkContext(&t); err != nil {
		return nil, err
	}
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	if t.Now.IsZero() {
		t.Now = e.opts.Now()
	}
	turn := &Turn{engine: e, gen: g, context: t.Clone(), scope: newScope(g.cfg.Budgets.Turn, true), users: 1, calls: map[phases.Phase]int{}}
	if t.SessionID != "" {
		begun, known := e.memory.begunWith(t)
		turn.ofSession = known
		turn.scope.contexts = begun.contexts
		turn.scope.brought = []brought{{phase: begun.phase, sources: begun.sources}}
		turn.scope.ask(e.memory.askedIn(t))
	}
	return turn, nil
}

// InSession reports whether the turn began with what [Engine.StartSession] or
// [Engine.ResumeSession] of its session brought. False is a turn without a session,
// and one whose session began in another engine, or so long ago that it was forgotten.
func (t *Turn) InSession() bool { return t.ofSession }

// Context returns the turn's context.
func (t *Turn) Context() phases.Context { return t.context.Clone() }

// enter keeps the turn's configuration for one call; leave ends that.
func (t *Turn) enter() error {
	if t.engine.isClosed() {
		return ErrClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return ErrTurnEnded
	}
	t.users++
	return nil
}

func (t *Turn) leave() {
	t.mu.Lock()
	t.users--
	last := t.users == 0
	t.mu.Unlock()
	if last {
		t.gen.leave()
	}
}

// close ends the turn without a word to the plugins.
func (t *Turn) close(ctx context.Context) {
	t.mu.Lock()
	again := t.ended
	t.ended = true
	t.mu.Unlock()
	if !again {
		t.keepRest(ctx)
		t.leave()
	}
}

// Dispatch runs any phase in this turn: a host's own, or one whose input is only
// known at run time. The typed methods do the same. A turn whose ledger is full runs
// none ([Turn.LedgerBytes]); the next manifest says how many it refused.
func (t *Turn) Dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	if err := t.scope.admit(); err != nil {
		return nil, err
	}
	return t.dispatch(ctx, in)
}

func (t *Turn) dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error) {
	if in == nil {
		return nil, errNoInput
	}
	switch in.Phase() {
	case phases.ToolPreCall, phases.ToolPostCall:
	default:
		t.serial.Lock()
		defer t.serial.Unlock()
	}
	if err := t.judgeless(in.Phase()); err != nil {
		return nil, err
	}
	return t.engine.dispatch(ctx, t.gen, request{context: t.context, input: in, scope: t.scope, key: t.key(in.Phase())})
}

// key makes the calls of a turn repeatable: the same turn id gives the same keys
// to the same dispatches of a phase. Tool phases that run at the same time are
// numbered as they come.
func (t *Turn) key(p phases.Phase) string {
	if t.context.TurnID == "" {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[p]++
	c := &t.context
	return c.WorkspaceID + "/" + c.ThreadID + "/" + c.TurnID + "/" + string(p) + "/" + strconv.Itoa(t.calls[p])
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
// bounds; nil is an empty one. Its usage is kept for the turn's last manifest, as
// the sum of all rounds, unless rounds were reported by ReportUsage. A context
// that is done already does not keep the turn from ending: that is how an
// interrupted turn ends. A second call returns what the first one did.
func (t *Turn) End(ctx context.Context, in *phases.PostTurnInput) (*phases.Outcome, error) {
	t.mu.Lock()
	if t.ended {
		defer t.mu.Unlock()
		return t.last, nil
	}
	t.ended = true
	t.mu.Unlock()
	defer t.leave()
	if t.engine.isClosed() {
		t.keepRest(ctx)
		return nil, ErrClosed
	}
	if in == nil {
		in = &phases.PostTurnInput{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	out, err := t.dispatch(ctx, in)
	t.reportWhole(ctx, in.Usage, out)
	if out != nil {
		out.Diagnostics = append(out.Diagnostics, t.keepRest(ctx)...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = out
	return out, err
}
