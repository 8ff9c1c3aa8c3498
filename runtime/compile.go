package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// CompileInput is what a host brings to a compiled turn. The zero value is a
// turn without a message, for a provider without tools.
type CompileInput struct {
	UserText string
	// Model and Provider have at most [phases.MaxIDBytes]: they are kept.
	Model    string
	Provider string
	// ToolCalling says whether the provider can call tools.
	ToolCalling bool
	// ExistingTools are the names of the host's own tools. None should be called
	// request_tools: while one is, nothing that is hidden can be asked for.
	ExistingTools []string
	// RecallPlan is what the host's planner wants recalled, JSON; without it
	// turn.post_preflight_prompt_context is not dispatched by CompileTurn.
	RecallPlan json.RawMessage
	// Prompt holds the host's own texts, facts and limits. The runtime fills in
	// what the turn has gathered: profile, sections, contexts, tools.
	Prompt compiler.Input
}

// Compiled is a compiled turn. Its JSON is the output of "grapnel compile".
type Compiled struct {
	// Prompt is nil when the turn was blocked before or after compiling.
	Prompt   *compiler.Prompt   `json:"prompt"`
	Manifest *manifest.Manifest `json:"manifest"`
	// Tools are the definitions to offer the model beside the host's own, by name:
	// what plugins brought, but for what is hidden, and request_tools where that is
	// so and ToolCalling is set. Turn.CallTool answers them.
	Tools       []phases.Tool           `json:"tools"`
	Reminders   []phases.MergedReminder `json:"reminders"`
	Diagnostics []phases.Diagnostic     `json:"diagnostics"`
	// Error says why the turn was blocked, or which phase failed closed.
	Error *phases.Error `json:"error,omitempty"`
}

// For returns the compiled turn as the audience may see it; see
// phases.Diagnostic.For. The manifest is the record that audits are made of, and the
// same for everybody. It shares with c what does not change; nil stays nil.
func (c *Compiled) For(a phases.Audience) *Compiled {
	if c == nil {
		return nil
	}
	shown := *c
	shown.Diagnostics, shown.Error = phases.DiagnosticsFor(c.Diagnostics, a), c.Error.For(a)
	return &shown
}

// codeAsk is the code of a turn that stopped because a hook wants somebody to
// be asked.
const codeAsk phases.Cause = "ask"

// CompileTurn runs a whole turn up to the prompt, for hosts that want nothing
// else: turn.pre_policy, turn.pre_prompt_context,
// turn.post_preflight_prompt_context (only with a recall plan),
// turn.pre_tool_materialization, turn.pre_prompt_compile, the compiler, and
// turn.post_prompt_compile. There is no turn afterwards whose CallTool could answer
// request_tools: a host that has hidden tools puts the domains that a model asks for
// into Prompt.RequestedDomains of its next call. A deny, or an ask (there is nobody to ask), ends it
// as blocked: the error is a *phases.Error with the code "denied" or "ask". The
// result holds what is known all the same, the ledger included; it is nil only
// when no turn could begin.
func (e *Engine) CompileTurn(ctx context.Context, turn phases.Turn, in CompileInput) (*Compiled, error) {
	t, err := e.BeginTurn(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer t.close(ctx)
	return t.Round(ctx, in)
}

// blockedBy returns an error if a phase decided anything but allow.
func blockedBy(out *phases.Outcome) error {
	if out.Decision == nil || out.Decision.Verdict == phases.VerdictAllow {
		return nil
	}
	code := phases.CauseDenied
	if out.Decision.Verdict == phases.VerdictAsk {
		code = codeAsk
	}
	err := &phases.Error{Code: code, Phase: out.Phase}
	for _, r := range out.Decision.Reasons {
		if r.Verdict == out.Decision.Verdict {
			err.Subscription, err.Message = r.Subscription, r.Reason
			break
		}
	}
	return err
}

// Compile dispatches turn.pre_prompt_compile, compiles the prompt of what the
// turn has gathered, dispatches turn.post_prompt_compile with the manifest, and
// records it. It may be called again in the same turn, for the next round with
// the provider. A deny of the last phase gives no prompt and an error with the
// code "denied"; an ask is treated like a deny (code "ask"), because the prompt
// must not be sent yet. A blocked turn is recorded too. The result is nil only
// when the turn has ended, its ledger is full ([Turn.LedgerBytes]), or the input is
// refused.
func (t *Turn) Compile(ctx context.Context, in CompileInput) (*Compiled, error) {
	if err := t.enterRound(&in); err != nil {
		return nil, err
	}
	defer t.leave()
	return t.compile(ctx, in)
}

// enterRound is enter for a compilation: the turn must have room for its manifest.
func (t *Turn) enterRound(in *CompileInput) error {
	if err := cmp.Or(phases.CheckID("model", in.Model), phases.CheckID("provider", in.Provider)); err != nil {
		return err
	}
	if err := t.enter(); err != nil {
		return err
	}
	if err := t.scope.admitRound(); err != nil {
		t.leave()
		return err
	}
	return nil
}

// compile is Compile in a turn that was entered.
func (t *Turn) compile(ctx context.Context, in CompileInput) (*Compiled, error) {
	r, err := t.newRecording()
	if err != nil {
		return nil, err
	}
	m, err := r.compile(ctx, in)
	if err != nil {
		return r.blocked(ctx, in, err)
	}
	if err := r.keep(ctx, m); err != nil {
		return r.refused(m, err)
	}
	r.remember(m)
	t.scope.offer(r.output.Offered)
	t.usage.compiled(r.id)
	return r.compiled(&r.output.Prompt, m), nil
}

// compile runs both phases and the compiler between them.
func (r *recording) compile(ctx context.Context, in CompileInput) (*manifest.Manifest, error) {
	t, input := r.turn, r.input(in)
	r.notes = append(r.notes, t.remarks(in.UserText)...)
	t.scope.claim(input.Custom)
	known, err := compiler.Compile(input) // the host's own sections, so far
	if err != nil {
		return nil, err
	}
	_, err = t.dispatch(ctx, &phases.PrePromptCompileInput{
		ToolCalling: in.ToolCalling, AvailableTools: toolNames(known.Offered, in.ExistingTools), Sections: sectionIDs(known.Sections),
	})
	if err != nil {
		return nil, err
	}
	t.fill(&input)
	r.complete(ctx, &input, in)
	if r.output, err = compiler.Compile(input); err != nil {
		return nil, err
	}
	r.output.Diagnostics = append(r.output.Diagnostics, r.notes...)
	encoded, err := manifest.Canonical(r.manifest())
	if err != nil {
		return nil, err
	}
	out, err := t.dispatch(ctx, &phases.PostPromptCompileInput{Manifest: encoded, PromptText: phases.T(r.output.Prompt.FullText)})
	if err == nil {
		err = blockedBy(out)
	}
	return r.manifest(), err // with the ledger of the last phase
}

// blocked is the result of a turn whose prompt must not be sent. Its manifest is
// kept: it is the one that an auditor looks for.
func (r *recording) blocked(ctx context.Context, in CompileInput, err error) (*Compiled, error) {
	if r.output.Profile == "" { // blocked before there was a prompt: its fingerprints are those of an empty one
		input := r.input(in)
		none := manifest.Fingerprint("", input.FingerprintKey)
		r.output.Profile = input.Profile
		r.output.Files, r.output.Diagnostics = input.Files, r.notes
		r.output.Fingerprints = manifest.Fingerprints{
			FingerprintStable: none, FingerprintDynamic: none, FingerprintDynamicWithoutExtraSystem: none, FingerprintFull: none, FingerprintTools: none,
		}
	}
	m := r.manifest()
	// No provider has seen the prompt, so there is nothing that it could have kept.
	m.Cache = manifest.Cache{Provider: m.Cache.Provider, Model: m.Cache.Model}
	if kept := r.keep(ctx, m); kept != nil {
		err = errors.Join(err, kept)
	}
	return r.refused(m, err)
}

// refused is the result of a turn whose prompt is not handed out. Its reminders
// are not delivered then.
func (r *recording) refused(m *manifest.Manifest, err error) (*Compiled, error) {
	done := r.compiled(nil, m)
	r.turn.engine.memory.takeBack(r.turn.context, done.Reminders)
	done.Error = codedError(err)
	return done, err
}

func (r *recording) compiled(prompt *compiler.Prompt, m *manifest.Manifest) *Compiled {
	s := r.turn.scope
	done := &Compiled{Prompt: prompt, Manifest: m, Tools: definitions(r.output.Offered), Reminders: s.takeReminders()}
	s.mu.Lock()
	defer s.mu.Unlock()
	done.Diagnostics = slices.Concat(s.notes.rows(), s.ledger.notes(), r.output.Diagnostics)
	return done
}

func sectionIDs(sections []manifest.Section) []string {
	ids := make([]string, len(sections))
	for i := range sections {
		ids[i] = sections[i].SectionID
	}
	return ids
}

// input is the host's input with what the engine knows before any hook ran.
// Nothing is counted in it: what the hooks bring comes on top.
func (r *recording) input(in CompileInput) compiler.Input {
	t, input := r.turn, in.Prompt
	if input.Profile == "" {
		input.Profile = t.context.Profile
	}
	input.ToolCalling, input.HostTools = in.ToolCalling, in.ExistingTools
	t.scope.ask(input.RequestedDomains)
	input.Tools, input.RequestedDomains = append(slices.Clip(input.Tools), t.scope.tools()...), t.scope.requested()
	input.CountTokens, input.Tokenizer = nil, ""
	input.FingerprintKey = []byte(t.gen.cfg.Manifest.FingerprintKey.Value)
	if input.Facts.Date == "" {
		input.Facts.Date = t.context.Now.Format(time.DateOnly)
	}
	r.readHome(&input)
	return input
}

// complete adds what the whole prompt is compared, counted and kept with.
func (r *recording) complete(ctx context.Context, input *compiler.Input, in CompileInput) {
	o := &r.turn.engine.opts
	input.CountTokens, input.Tokenizer = o.CountTokens, o.TokenizerName
	input.Provider, input.Model = in.Provider, in.Model
	if input.Previous == nil {
		input.Previous = r.previous(ctx)
	}
	if input.CacheRules == nil && o.CacheRules != nil {
		if rules, ok := o.CacheRules(in.Provider, in.Model); ok {
			input.CacheRules = &rules
		}
	}
	input.KeepTexts = input.KeepTexts || o.Sink != nil && r.turn.gen.cfg.Manifest.KeepText
}

// fill adds what hooks have contributed.
func (t *Turn) fill(input *compiler.Input) {
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	input.Sections = slices.Clip(input.Sections)
	for i := range t.scope.brought {
		if t.scope.brought[i].phase == phases.RuntimePreContext {
			continue // another program's prompt
		}
		input.Sections = append(input.Sections, t.scope.brought[i].sections...)
	}
	input.Contexts = append(slices.Clip(input.Contexts), t.scope.contexts...)
}
