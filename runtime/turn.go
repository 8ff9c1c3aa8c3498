package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/keeper"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// ErrTurnEnded is returned by calls on a turn that has ended.
var ErrTurnEnded = errors.New("the turn has ended")

// ErrNothingCompiled is returned for a report about a turn without a prompt, and for its end ([Turn.PreEnd]).
var ErrNothingCompiled = errors.New("the turn has compiled no prompt yet")

var errHasPrompt = errors.New("the turn has a prompt of its own")

const endTime = 2 * time.Second

// Turn is one turn of a host.
//
//  1. Engine.BeginTurn makes it; it keeps the configuration of that moment.
//  2. Dispatch its phases as the host's loop reaches them. The turn carries on what they
//     bring (policies, contexts, tools, time used). Compile runs those ahead of the prompt
//     that the host has not run. CallTool makes the model's calls, between tool.pre_call
//     and tool.post_call.
//  3. Send what Compile returns, all of it: the prompt, its tools, and its reminders behind the
//     conversation. Report what the provider reported (ReportUsage) and how the request differed
//     (ReportRequest). Keep records at once what has happened since.
//  4. Ask whether it may end (PreEnd) when the model has finished, and go on if not.
//  5. End it, once all its calls have returned. Close records what happened in a turn that
//     the host holds and has not ended. Such a turn keeps its configuration and plugins for a
//     minute after a reload.
//
// What a host has left undone is a diagnostic of the turn's end, in its outcome, its record and as an event:
// "reminders_undelivered" (a turn of a session leaves them to the next one instead,
// until the session ends), "prompt_not_reported" and
// "turn_not_ended". Package loop does all of it.
//
// Phases of tools may run concurrently, and so may a turn's agents ([Turn.ForAgent]); other phases and compilations
// wait for each other. The error of a phase that failed closed is a *PhaseError; the outcome is still returned. After
// the engine was closed all calls fail with ErrClosed.
type Turn struct {
	*turn

	context phases.Context
	prompt  turnstate.Round // the last one
	callID  string          // that its phases of tools are about
}

// turn is what all agents of a turn share.
type turn struct {
	engine *Engine
	gen    *generation
	// begun is the context that the turn began with.
	begun phases.Context
	state *turnstate.State
	usage turnstate.Usage
	// compactions counts those within the turn, each of which begins an epoch of the session.
	compactions atomic.Int64

	// serial is held by all phases but those of tools, and round by a compilation.
	serial sync.Mutex
	round  chan struct{}

	mu sync.Mutex
	// users are the calls under way, and the turn itself until it is ended.
	users int
	ended bool
	// calls counts the dispatches of each phase, for idempotency keys.
	calls map[phases.Phase]int
	// last is the outcome of End.
	last *phases.Outcome
	// ofSession says that the engine knows how the turn's session began, and oneShot that the turn ends with its prompt.
	ofSession, oneShot bool
	// forgotten is stopped when the turn ends; see Engine.notEnded.
	forgotten goruntime.Cleanup
}

// BeginTurn begins a turn. Empty fields of t are unknown; Now is the engine's clock if zero. A context that
// [phases.CheckContext] refuses is an error. A turn of a session begins with the contexts of the session's start or
// resume, with the hidden tools that were requested in the session's epoch, and with the reminders that the start or
// earlier turns brought and no prompt has delivered yet; so it does if the session begins or resumes before its first prompt.
func (e *Engine) BeginTurn(_ context.Context, t phases.Context) (*Turn, error) {
	if err := turnstate.CheckContext(&t); err != nil {
		return nil, err
	}
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	if t.Now.IsZero() {
		t.Now = e.opts.Now()
	}
	begun := &turn{
		engine: e, gen: g, begun: t.Clone(), state: turnstate.New(g.cfg.Budgets.Turn, g.key), round: make(chan struct{}, 1), users: 1, calls: map[phases.Phase]int{},
	}
	g.setKept(begun.state)
	begun.forgotten = goruntime.AddCleanup(begun, e.notEnded, t.TurnID)
	e.open.Add(begun)
	if t.SessionID != "" {
		_, begun.ofSession = e.sessions.Started(t)
		begun.state.Ask(e.sessions.Asked(t))
		begun.join()
	}
	return &Turn{turn: begun, context: begun.begun}, nil
}

// judgeless is why a phase that decides cannot be dispatched yet: a guard of it depends on turn.pre_policy, which has
// hooks and has not been dispatched.
func (t *Turn) judgeless(phase phases.Phase) error {
	p := t.gen.planned.Load().phases[phase]
	if p == nil || p.turnNeeded == nil || !p.Row.Decides() || t.state.Dispatched(phases.PrePolicy) || len(t.gen.planned.Load().phases[phases.PrePolicy].Running()) == 0 {
		return nil
	}
	return p.turnNeeded
}

// PreEnd is what hooks say about the end of a turn.
type PreEnd struct {
	// GoOn says that the turn must not end yet: the host sends Reason to the model, as it sends the user's words, and
	// compiles the prompt of another round.
	GoOn bool
	// Reason holds the reasons of all hooks that deny the end; never empty with GoOn.
	Reason string
	// Outcome is the phase's. Its reminders come with the next prompt, also where that is the next turn's.
	Outcome *phases.Outcome
}

// PreEnd dispatches turn.pre_end. Call it when the model has finished, before End: hooks that deny the end make the
// turn go on, for [phases.MaxForced] times. An ask does not, nor does a phase that failed, which is an error as of the
// other phases. Before the turn's first prompt, or runtime.turn_pre_context, the error is ErrNothingCompiled.
func (t *Turn) PreEnd(ctx context.Context, in *phases.PreEndInput) (*PreEnd, error) {
	out, err := t.Dispatch(ctx, in)
	if out == nil {
		return nil, err
	}
	end := &PreEnd{Outcome: out}
	if err == nil && out.Decision != nil && out.Decision.Verdict == phases.VerdictDeny {
		end.GoOn, end.Reason = true, goOnReason(out.Decision)
	}
	return end, err
}

func goOnReason(d *phases.Decided) string {
	var reasons []string
	for _, r := range d.Reasons {
		if r.Verdict == phases.VerdictDeny && r.Reason != "" {
			reasons = append(reasons, r.Reason)
		}
	}
	if len(reasons) == 0 {
		return "The turn must not end yet. Go on."
	}
	return strings.Join(reasons, "\n\n")
}

// join takes what the start of the session brought, and the reminders that wait there. A host may begin or resume the
// session when the turn has begun.
func (t *turn) join() {
	if t.begun.SessionID == "" {
		return
	}
	if start, known := t.engine.sessions.Started(t.begun); known {
		t.state.Join(start.Contexts, start.Phase, start.Sources)
	}
	t.state.Remind(t.engine.sessions.TakePending(t.begun)...)
}

// ForAgent returns the same turn for another agent: frameworks run several in one invocation. Its phases, prompts and
// records carry the id; policies, contexts, tools, budgets and the ledger are the turn's, and so is its end. An id has
// at most [phases.MaxIDBytes].
func (t *Turn) ForAgent(id string) (*Turn, error) {
	if err := phases.CheckID("agent_id", id); err != nil {
		return nil, err
	}
	other := &Turn{turn: t.turn, context: t.context}
	other.context.AgentID = id
	return other, nil
}

// In returns the same turn for phases that concern another directory than the turn's, such as those of a tool that runs
// there. Its directory is all that differs.
func (t *Turn) In(dir string) *Turn {
	other := &Turn{turn: t.turn, context: t.context, prompt: t.usage.Last(&t.prompt)}
	other.context.Dir = dir
	return other
}

// ForCall returns the same turn for phases of a tool call that the host knows by an id: records name it where
// manifest.keep_inputs is set.
func (t *Turn) ForCall(id string) *Turn {
	return &Turn{turn: t.turn, context: t.context, prompt: t.usage.Last(&t.prompt), callID: id}
}

// InSession reports whether the turn began with what [Engine.StartSession] or [Engine.ResumeSession] of its session
// brought. It is false, too, for a session that began in another engine or was forgotten.
func (t *Turn) InSession() bool { return t.ofSession }

// Outdated reports whether another configuration is in force than the one that the turn began with. The plugins that only
// the earlier one has are stopped a minute after the reload.
func (t *Turn) Outdated() bool { return t.engine.current.Load() != t.gen }

// LedgerBytes returns about how large the turn's ledger is, up to 4 MiB; manifests of its next compilations grow by
// as much. A turn with a full ledger refuses dispatches and tool calls ([phases.CauseBudgetExhausted]), and compiles
// once more.
func (t *Turn) LedgerBytes() int { return t.state.LedgerBytes() }

// Context returns the turn's context. Its epoch rises with each [phases.PostCompaction] that succeeds in the turn.
func (t *Turn) Context() phases.Context { return t.now(t.context).Clone() }

// now returns a context of the turn with the epoch as it is now.
func (t *turn) now(c phases.Context) phases.Context {
	c.Epoch += int(t.compactions.Load())
	return c
}

// Remind adds a reminder of the host's, which the turn's next prompt delivers with those of hooks. The type is a name
// ([phases.ValidName]). It fails with ErrTurnEnded or ErrClosed, when the ledger is full, and for a reminder that no
// plugin may contribute either.
func (t *Turn) Remind(r phases.Reminder) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	row, _ := t.engine.table.Lookup(phases.ToolPostCall)
	if err := phases.ValidateContribution(&r, row); err != nil {
		return err
	}
	if err := t.state.Admit(); err != nil {
		return err
	}
	t.state.Remind(phases.MergedReminder{Type: r.Type, Attributes: maps.Clone(r.Attributes), Text: r.Text, DedupeKey: r.DedupeKey, Owner: phases.OwnerHost})
	return nil
}

// HandReminders returns the reminders that wait for the next prompt, in order and up to the first that does not fit, for
// a host that can give them to the model before: with its answer to a phase of a tool, as a rule. No prompt has them
// again, and the turn's next record says with which phase they went. It fails with ErrTurnEnded or ErrClosed.
func (t *Turn) HandReminders(with phases.Phase, fits func(r *phases.MergedReminder) bool) ([]phases.MergedReminder, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	return t.state.HandReminders(with, fits), nil
}

func (t *turn) enter() error {
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

func (t *turn) leave() {
	t.mu.Lock()
	t.users--
	last := t.users == 0
	t.mu.Unlock()
	if last {
		t.engine.open.Remove(t)
		t.gen.leave()
	}
}

// close ends the turn without turn.post_turn. Its last record is that of its prompt, which says so.
func (t *turn) close() {
	if t.takeEnd() {
		t.passOn()
		t.leave()
	}
}

// takeEnd ends the turn for new calls, and reports whether it had not ended before.
func (t *turn) takeEnd() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := t.ended
	t.ended = true
	t.forgotten.Stop()
	return !again
}

// Dispatch runs a phase in this turn. The outcome's Rewritten holds the arguments or the result of a tool to go on with.
// A turn whose ledger is full runs none ([Turn.LedgerBytes]).
func (t *Turn) Dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	if err := t.state.Admit(); err != nil {
		return nil, err
	}
	return t.dispatch(ctx, in)
}

func (t *Turn) dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error) {
	if in == nil {
		return nil, errNoInput
	}
	switch phases.PhaseOf(in) {
	case phases.ToolPreCall, phases.ToolPostCall:
	default:
		t.serial.Lock()
		defer t.serial.Unlock()
	}
	if err := t.judgeless(phases.PhaseOf(in)); err != nil {
		return nil, err
	}
	if err := t.prompted(phases.PhaseOf(in)); err != nil {
		return nil, err
	}
	rq := &request{context: t.now(t.context), input: in, state: t.state, key: t.key(phases.PhaseOf(in)), callID: t.callID}
	rq.prompt = t.usage.Last(&t.prompt).Ref
	if phases.PhaseOf(in) != phases.PostCompaction {
		return t.engine.dispatch(ctx, t.gen, rq)
	}
	rq.context.Epoch++
	out, err := t.engine.dispatch(ctx, t.gen, rq)
	if err == nil {
		t.compactions.Add(1)
	}
	return out, err
}

// prompted returns an error for the end of a turn that has sent the model nothing.
func (t *Turn) prompted(p phases.Phase) error {
	if p != phases.PreEnd || t.usage.Prompts() > 0 || t.usage.Last(&t.prompt).IsPrompt() || t.state.Dispatched(phases.RuntimePreContext) {
		return nil
	}
	return fmt.Errorf("%s: %w", p, ErrNothingCompiled)
}

// key makes the calls of a turn repeatable: the same turn id gives the same keys to the same dispatches of a phase.
func (t *Turn) key(p phases.Phase) string {
	if t.context.TurnID == "" {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[p]++
	return t.scope() + string(p) + "/" + strconv.Itoa(t.calls[p])
}

// scope is what the keys of a turn begin with; empty for a turn without an id.
func (t *turn) scope() string {
	c := &t.begun
	if c.TurnID == "" {
		return ""
	}
	return c.WorkspaceID + "/" + c.ThreadID + "/" + c.TurnID + "/"
}

// End dispatches turn.post_turn, whose hooks run in the background, and releases the configuration. The input is cut
// to the phase's bounds; nil is an empty one. Its usage is kept for the turn's last manifest, as the sum of all
// rounds, unless ReportUsage reported rounds. A turn ends even if ctx is done. A second call returns the first
// outcome.
func (t *Turn) End(ctx context.Context, in *phases.PostTurnInput) (*phases.Outcome, error) {
	if !t.takeEnd() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.last == nil && t.engine.isClosed() {
			return nil, ErrClosed
		}
		return t.last, nil
	}
	defer t.leave()
	if t.engine.isClosed() {
		_ = t.keepEvents(ctx, true) // it is reported, here and below
		return nil, ErrClosed
	}
	if in == nil {
		in = &phases.PostTurnInput{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	out, err := t.dispatch(ctx, in)
	t.reportWhole(ctx, in.Usage, out)
	t.noteUndone(in, out)
	if t.state.NeverCompiled(in.Status) {
		t.state.AddRuns(t.skipped(ctx, &CompileInput{})...)
	}
	_ = t.keepEvents(ctx, true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = out
	return out, err
}

// Remark puts a diagnostic of the host's on record: it stands in the turn's next record. A turn that has ended drops it.
func (t *Turn) Remark(d phases.Diagnostic) {
	if t.enter() != nil {
		return
	}
	defer t.leave()
	t.note(nil, d)
}

// keepEvents is [Engine.keepEvents] for a turn. It waits for a compilation under way, which makes a record, too.
func (t *turn) keepEvents(ctx context.Context, ends bool) error {
	select {
	case t.round <- struct{}{}:
		defer func() { <-t.round }()
	case <-ctx.Done(): // what it brings is in its own record
	}
	return t.engine.keepEvents(ctx, t.gen, new(t.now(t.begun)), t.state, ends)
}

// OnlyLooks says that the host makes nothing of the turn, such as listing tools: unless it has a prompt, it leaves a record
// only if something in it was not allowed, was rewritten, failed or was audited.
func (t *Turn) OnlyLooks() { t.state.OnlyLooks() }

// Keep records what has happened in the turn since its last record, for a host that acts on it at once and may be killed
// before the turn's next prompt or end. It fails with ErrTurnEnded or ErrClosed, or if the record cannot be kept and the
// operator wants such turns refused.
func (t *Turn) Keep(ctx context.Context) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	err := t.keepEvents(ctx, false)
	if err != nil && t.gen.cfg.Manifest.OnFailure == "refuse" {
		return phases.Errorf(keeper.Code(err), "what happened in the turn could not be kept: %w", err)
	}
	return nil
}

// reportWhole keeps the usage of a turn whose rounds were not reported. A failure is a diagnostic of the turn's end.
func (t *turn) reportWhole(ctx context.Context, u phases.Usage, out *phases.Outcome) {
	id, rounds := t.usage.Whole()
	if rounds == 0 || u == (phases.Usage{}) {
		return
	}
	err := t.engine.ReportUsage(ctx, manifest.Usage{ManifestID: id, Rounds: rounds, Usage: u})
	if err != nil && out != nil {
		out.Diagnostics = append(out.Diagnostics, phases.Diagnostic{
			Code: codeUsageNotKept, Severity: phases.SeverityWarning,
			Message: "what the provider reported for this turn was not kept (" + string(keeper.Code(err)) + ")",
		})
	}
}
