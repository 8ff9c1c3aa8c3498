package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// CompileInput is what a host brings to a compilation. The zero value has no message, and a provider without tools.
type CompileInput struct {
	UserText string
	// Model and Provider have at most [phases.MaxIDBytes].
	Model, Provider string
	// HooksOnly compiles only what hooks bring, for a host that gives it to a model beside a prompt of its own. ToolCalling
	// then says that the model gets plugins' tools by another way; see compiler.Input.
	HooksOnly bool
	// ToolCalling says whether the provider can call tools.
	ToolCalling bool
	// KeepReminders leaves reminders for the next answer that takes text ([Turn.HandReminders]), prompt or turn of the session.
	KeepReminders bool
	// ExistingTools are the names of the host's own tools. While one is called request_tools, hidden tools cannot be
	// requested.
	ExistingTools []string
	// HostTools are definitions of the host's own tools, for the record. Their names are existing tools, too.
	HostTools []phases.Tool
	// History is what the host sends behind the prompt, for the record; nil where it does not say. See
	// history.Window.Record.
	History *manifest.History
	// HistoryOf, if set, is called once with the prompt and the tools to offer, when they are known, and gives the History
	// of what the host chooses to send behind them. It must be a pure function of them.
	HistoryOf func(p *compiler.Prompt, tools []phases.Tool) *manifest.History
	// HostFiles are the paths of files that the host gives the model by itself, for the record.
	HostFiles []string
	// RequestedDomains are hidden domains whose tools are offered from now on.
	RequestedDomains []string
	// RecallPlan is the host planner's JSON for turn.post_preflight_prompt_context, which is omitted without it.
	RecallPlan json.RawMessage
	// Profile is how much is compiled; empty is the profile of the turn's context.
	Profile phases.Profile
	// Order is how the dynamic part of the prompt is sorted.
	Order compiler.Order
	// Host and Custom are the host's texts: for sections of the table, and for its own. Limits bound them.
	Host   compiler.HostTexts
	Custom []compiler.CustomSection
	Limits compiler.Limits
	// Facts stand at the end of the prompt. The date is the turn's if empty.
	Facts compiler.Facts
	// MoveUnstable moves a section that was declared stable and changed within the session to the dynamic part, from
	// then on.
	MoveUnstable bool
}

// Compiled is a compiled turn. Its JSON is the output of "grapnel compile".
type Compiled struct {
	// Prompt is nil when the turn was blocked before or after compiling.
	Prompt   *compiler.Prompt   `json:"prompt"`
	Manifest *manifest.Manifest `json:"manifest"`
	// Tools are the definitions to offer the model beside the host's own, by name: those of plugins that are not
	// hidden, and request_tools if some are hidden and ToolCalling is set. Turn.CallTool answers them.
	Tools []phases.Tool `json:"tools"`
	// Reminders are to be put behind the conversation, in order, with this prompt; no later one has them again. A host
	// renders each by sdk.Reminder.
	Reminders   []phases.MergedReminder `json:"reminders"`
	Diagnostics []phases.Diagnostic     `json:"diagnostics"`
	// Error says why the turn was blocked, or which phase failed closed.
	Error *phases.Error `json:"error,omitempty"`
}

// For returns the compiled turn as the audience may see it (phases.Diagnostic.For); the manifest is the same for all.
// It shares unchanged parts with c; nil stays nil.
func (c *Compiled) For(a phases.Audience) *Compiled {
	if c == nil {
		return nil
	}
	shown := *c
	shown.Diagnostics, shown.Error = phases.DiagnosticsFor(c.Diagnostics, a), c.Error.For(a)
	return &shown
}

// CompileTurn runs a whole turn up to the prompt: turn.pre_policy, turn.pre_prompt_context,
// turn.post_preflight_prompt_context (only with a recall plan), turn.pre_tool_materialization,
// turn.pre_prompt_compile, the compiler, and turn.post_prompt_compile. No CallTool answers request_tools afterwards:
// a host puts the domains that a model asks for into RequestedDomains of the next call. A deny, or an ask (nobody can
// be asked), blocks it: the error is a *phases.Error with the code "denied" or "ask". The result still holds what is
// known; it is nil only if no turn could begin.
func (e *Engine) CompileTurn(ctx context.Context, turn phases.Context, in CompileInput) (*Compiled, error) {
	t, err := e.BeginTurn(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer t.close()
	t.oneShot = true
	return t.Compile(ctx, in)
}

// Compile compiles the prompt of one round with the provider, and records it. First it runs the phases ahead of the
// compiler ([Engine.CompileTurn]) that this turn has not passed yet, turn.pre_policy also for another text of the
// user's than it has judged; a phase that failed is run again, and an ask counts as passed only if the host dispatched
// the phase itself, and so could ask. Then come turn.pre_prompt_compile, the compiler, and turn.post_prompt_compile.
//
// A deny by turn.pre_policy holds until the same text is judged again by a dispatch of the host's: Compile then runs
// nothing. A blocked turn has no prompt and an error as of CompileTurn, which names the hook, and is recorded too. The
// result is nil only if the turn has ended, its ledger is full ([Turn.LedgerBytes]), the input is refused, or ctx is
// done while another compilation of the turn goes on.
func (t *Turn) Compile(ctx context.Context, in CompileInput) (*Compiled, error) {
	release, err := t.takeRound(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := t.enterRound(&in); err != nil {
		return nil, err
	}
	defer t.leave()
	t.join()
	err = t.before(ctx, in)
	if errors.Is(err, ErrTurnEnded) {
		return nil, err
	}
	r, failed := t.newRecording(&in)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return r.blocked(ctx, &in, err)
	}
	return r.compiledRound(ctx, &in)
}

// takeRound waits until no other compilation of the turn goes on.
func (t *Turn) takeRound(ctx context.Context) (release func(), err error) {
	release = func() { <-t.round }
	select {
	case t.round <- struct{}{}:
		return release, nil
	default:
	}
	select {
	case t.round <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, bounded.TimeUp(ctx)
	}
}

func (t *Turn) before(ctx context.Context, in CompileInput) error {
	if denied := t.state.Denied(); denied != nil {
		return denied
	}
	text := phases.T(in.UserText)
	steps := []phases.Input{
		&phases.PrePolicyInput{UserText: text, Model: in.Model, Provider: in.Provider},
		&phases.PrePromptContextInput{UserText: text, Model: in.Model, Provider: in.Provider},
	}
	if len(in.RecallPlan) > 0 {
		steps = append(steps, &phases.PostPreflightInput{UserText: text, Model: in.Model, Provider: in.Provider, RecallPlan: in.RecallPlan})
	}
	steps = append(steps, &phases.PreToolsInput{ToolCalling: in.ToolCalling, ExistingTools: in.ExistingTools})
	for _, step := range steps {
		if t.state.Passed(phases.PhaseOf(step), in.UserText) {
			continue
		}
		out, err := t.Dispatch(ctx, step)
		if err == nil {
			err = turnstate.Blocked(out)
		}
		if err != nil {
			t.state.Stop(phases.PhaseOf(step)) // nobody was asked
			return err
		}
	}
	return nil
}

// enterRound is enter for a compilation, which the ledger must admit.
func (t *Turn) enterRound(in *CompileInput) error {
	if err := cmp.Or(phases.CheckID("model", in.Model), phases.CheckID("provider", in.Provider)); err != nil {
		return err
	}
	in.ExistingTools = t.gen.tools.Names(in.ExistingTools, in.HostTools)
	if err := t.enter(); err != nil {
		return err
	}
	if err := t.state.AdmitRound(); err != nil {
		t.leave()
		return err
	}
	return nil
}

func (r *recording) compiledRound(ctx context.Context, in *CompileInput) (*Compiled, error) {
	m, err := r.compile(ctx, in)
	if err != nil {
		return r.blocked(ctx, in, err)
	}
	if err := r.keep(ctx, m); err != nil {
		return r.refused(m, err)
	}
	t := r.turn
	r.outline.Seq = m.Seq
	t.engine.sessions.KeepPrompt(t.context, r.outline)
	t.state.Offer(r.output.Offered)
	t.usage.Compiled(&t.prompt, m)
	done := r.compiled(&r.output.Prompt, m)
	if in.KeepReminders {
		r.turn.state.Requeue(done.Reminders)
		done.Reminders = []phases.MergedReminder{}
	}
	return done, nil
}
