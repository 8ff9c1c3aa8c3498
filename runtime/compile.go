package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// CompileInput is what a host brings to a compiled turn. The zero value is a
// turn without a message, for a provider without tools.
type CompileInput struct {
	UserText string
	Model    string
	Provider string
	// ToolCalling says whether the provider can call tools.
	ToolCalling bool
	// ExistingTools are the names of the host's own tools.
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
	// Tools are the definitions that plugins brought, by name.
	Tools       []phases.Tool           `json:"tools"`
	Reminders   []phases.MergedReminder `json:"reminders"`
	Diagnostics []phases.Diagnostic     `json:"diagnostics"`
	// Error says why the turn was blocked, or which phase failed closed.
	Error *phases.Error `json:"error,omitempty"`
}

// codeAsk is the code of a turn that stopped because a hook wants somebody to
// be asked.
const codeAsk phases.Cause = "ask"

// CompileTurn runs a whole turn up to the prompt, for hosts that want nothing
// else: turn.pre_policy, turn.pre_prompt_context,
// turn.post_preflight_prompt_context (only with a recall plan),
// turn.pre_tool_materialization, turn.pre_prompt_compile, the compiler, and
// turn.post_prompt_compile. A deny, or an ask (there is nobody to ask), ends it
// as blocked: the error is a *phases.Error with the code "denied" or "ask". The
// result is never nil and holds what is known, the ledger included.
func (e *Engine) CompileTurn(ctx context.Context, turn phases.Turn, in CompileInput) (*Compiled, error) {
	t, err := e.BeginTurn(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer t.abandon()
	if err := t.before(ctx, in); err != nil {
		return t.blocked(in, err)
	}
	return t.Compile(ctx, in)
}

// abandon lets go of a turn whose end the host does not tell.
func (t *Turn) abandon() {
	if !t.ended.Swap(true) {
		t.gen.leave()
	}
}

// before runs the phases ahead of the compiler.
func (t *Turn) before(ctx context.Context, in CompileInput) error {
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
		out, err := t.Dispatch(ctx, step)
		if err != nil {
			return err
		}
		if err := blockedBy(out); err != nil {
			return err
		}
	}
	return nil
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
// records it. A deny of the last phase gives no prompt and an error with the
// code "denied"; an ask is returned in the outcome of the phase and treated like
// a deny, because the prompt must not be sent yet. The result is never nil.
func (t *Turn) Compile(ctx context.Context, in CompileInput) (*Compiled, error) {
	input := t.compilerInput(in)
	t.scope.claim(input.Custom)
	known, err := compiler.Compile(input) // the host's own sections, so far
	if err != nil {
		return t.blocked(in, err)
	}
	_, err = t.Dispatch(ctx, &phases.PrePromptCompileInput{
		ToolCalling: in.ToolCalling, AvailableTools: t.toolNames(in.ExistingTools), Sections: sectionIDs(known.Sections),
	})
	if err != nil {
		return t.blocked(in, err)
	}
	t.fill(&input)
	output, err := compiler.Compile(input)
	if err != nil {
		return t.blocked(in, err)
	}
	m := t.manifest(&output)
	if err := t.after(ctx, m, &output); err != nil {
		return t.blocked(in, err)
	}
	m = t.manifest(&output) // with the ledger of the last phase
	t.engine.memory.keepSections(t.context, output.Sections)
	done := t.compiled(&output.Prompt, m, output.Diagnostics)
	return done, t.record(ctx, m)
}

func sectionIDs(sections []manifest.Section) []string {
	ids := make([]string, len(sections))
	for i := range sections {
		ids[i] = sections[i].SectionID
	}
	return ids
}

// after lets hooks judge the compiled prompt.
func (t *Turn) after(ctx context.Context, m *manifest.Manifest, output *compiler.Output) error {
	encoded, err := manifest.Canonical(m)
	if err != nil {
		return err
	}
	out, err := t.Dispatch(ctx, &phases.PostPromptCompileInput{Manifest: encoded, PromptText: phases.T(output.Prompt.FullText)})
	if err != nil {
		return err
	}
	return blockedBy(out)
}

// compilerInput is the host's input with what the engine knows.
func (t *Turn) compilerInput(in CompileInput) compiler.Input {
	input := in.Prompt
	if input.Profile == "" {
		input.Profile = t.context.Profile
	}
	input.ToolCalling = in.ToolCalling
	if input.Previous == nil {
		input.Previous = t.engine.memory.previousSections(t.context)
	}
	input.CountTokens, input.Tokenizer = t.engine.opts.CountTokens, t.engine.opts.TokenizerName
	input.FingerprintKey = []byte(t.gen.cfg.Manifest.FingerprintKey.Value)
	if input.Facts.Date == "" {
		input.Facts.Date = t.context.Now.Format(time.DateOnly)
	}
	return input
}

// fill adds what hooks have contributed.
func (t *Turn) fill(input *compiler.Input) {
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	input.Sections = append(slices.Clip(input.Sections), t.scope.sections...)
	input.Contexts = append(slices.Clip(input.Contexts), t.scope.contexts...)
	input.Tools = append(slices.Clip(input.Tools), t.scope.tools...)
}

// toolNames are all tools that the model will be offered.
func (t *Turn) toolNames(existing []string) []string {
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	names := slices.Clone(existing)
	for _, tool := range t.scope.tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// blocked is the result of a turn that has no prompt.
func (t *Turn) blocked(in CompileInput, err error) (*Compiled, error) {
	output := &compiler.Output{}
	output.Profile = t.compilerInput(in).Profile
	done := t.compiled(nil, t.manifest(output), nil)
	done.Error = codedError(err)
	return done, err
}

func (t *Turn) compiled(prompt *compiler.Prompt, m *manifest.Manifest, notes []phases.Diagnostic) *Compiled {
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	done := &Compiled{
		Prompt: prompt, Manifest: m, Tools: []phases.Tool{}, Reminders: append([]phases.MergedReminder{}, t.scope.reminder...),
		Diagnostics: append(append([]phases.Diagnostic{}, t.scope.notes...), notes...),
	}
	for _, tool := range t.scope.tools {
		done.Tools = append(done.Tools, tool.Definition)
	}
	return done
}

// newID makes a ULID of the turn's time.
func (t *Turn) newID() string {
	return ulid.MustNew(ulid.Timestamp(t.engine.opts.Now()), ulid.DefaultEntropy()).String()
}

// record hands the manifest to the sink.
func (t *Turn) record(ctx context.Context, m *manifest.Manifest) error {
	sink := t.engine.opts.Sink
	if sink == nil {
		return manifest.Seal(m, nil, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, sinkTime)
	defer cancel()
	err := sink.Append(ctx, m)
	if err == nil {
		return nil
	}
	t.engine.emit(Event{Kind: EventManifest, State: "not_kept", Detail: err.Error()})
	t.engine.opts.Logger.Error("the manifest was not kept", "manifest", m.ManifestID, "error", err)
	if t.gen.cfg.Manifest.OnFailure == "refuse" {
		return fmt.Errorf("the manifest could not be kept: %w", err)
	}
	return manifest.Seal(m, nil, nil)
}

// sinkTime is the longest that keeping a manifest may hold a turn up.
const sinkTime = 500 * time.Millisecond
