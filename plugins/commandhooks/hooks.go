package commandhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/scripts"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// plugin is commandhooks under one configuration. It is safe for concurrent use.
type plugin struct {
	config     config
	handlers   []agent.Hook
	transcript string

	mu sync.Mutex
	// kept is what hooks of a message brought for the model, until the phase for it: by hook and turn.
	kept recent.Map[[]string]
}

// maxKept bounds the contexts that wait for their phase.
const maxKept = 256

// maxText bounds a reason or a note of a script, in characters.
const maxText = 8000

func (p *plugin) hooks() []sdk.Hook {
	var hooks []sdk.Hook
	for i := range p.handlers {
		hooks = append(hooks, p.subscriptions(&p.handlers[i])...)
	}
	return hooks
}

// subscriptions are those of one handler: one for most, one for each phase at the beginning of a session, and another for
// what a hook of a message brings for the model.
func (p *plugin) subscriptions(h *agent.Hook) []sdk.Hook {
	one := sdk.Hook{
		Name: h.ID, Doc: doc(h), Timeout: h.Timeout, OnFailure: p.onFailure(h), Visibility: phases.VisibilityUserAudit, Role: phases.RoleContribute,
	}
	if h.Background {
		one.Role = phases.RoleObserve
	}
	switch h.Step {
	case agent.StepSessionStart:
		return p.session(h, one)
	case agent.StepPrompt:
		return p.prompt(h, one)
	case agent.StepToolCall:
		p.call(h, &one)
	case agent.StepToolResult, agent.StepToolFailed:
		one.Needs = []string{"arguments", "touched_paths", "result", "outcome"}
		if !h.Background {
			one.Role, one.Kinds = phases.RoleTransform, []phases.Kind{phases.KindRewrite, phases.KindReminder}
		}
		one.ToolPostCall = func(ctx context.Context, c *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
			if (in.Outcome == "ok") != (h.Step == agent.StepToolResult) {
				return sdk.Filtered()
			}
			f := p.facts(c, agent.Facts{Tool: in.Tool, Arguments: in.Arguments, Paths: in.TouchedPaths, Result: in.Result.Text})
			return p.answer(ctx, h, f)
		}
	case agent.StepStop:
		one.Needs = []string{"text", "forced"}
		if !h.Background {
			one.Role, one.Kinds = phases.RoleValidate, []phases.Kind{phases.KindDecision, phases.KindReminder}
		}
		one.PreEnd = runs(p, h, func(in *phases.PreEndInput) agent.Facts { return agent.Facts{Text: in.Text.Value, Forced: in.Forced} })
	case agent.StepCompact, agent.StepOnlyCompact:
		one.Kinds, one.Needs = []phases.Kind{phases.KindPromptContext}, []string{"trigger"}
		one.PreCompaction = runs(p, h, func(in *phases.PreCompactionInput) agent.Facts { return agent.Facts{Source: in.Trigger} })
	case agent.StepCompacted:
		one.Needs = []string{"summary"}
		one.PostCompaction = runs(p, h, func(in *phases.PostCompactionInput) agent.Facts {
			return agent.Facts{Source: "auto", Text: in.Summary.Text}
		})
	case agent.StepSessionEnd:
		one.Role, one.Needs = phases.RoleObserve, []string{"reason"}
		one.SessionEnd = runs(p, h, func(in *phases.SessionEndInput) agent.Facts { return agent.Facts{Source: in.Reason} })
	default:
		p.turnEnd(h, &one)
	}
	return []sdk.Hook{one}
}

// runs is a handler of a phase that runs a hook with what the phase's input says.
func runs[I any](p *plugin, h *agent.Hook, facts func(in I) agent.Facts) func(context.Context, *sdk.Call, I) ([]phases.Contribution, error) {
	return func(ctx context.Context, c *sdk.Call, in I) ([]phases.Contribution, error) {
		return p.answer(ctx, h, p.facts(c, facts(in)))
	}
}

func doc(h *agent.Hook) string {
	line, _ := sdk.CutLine(strings.Join(append([]string{h.Event + ": " + h.Command}, h.Args...), " "), 200)
	return line
}

// onFailure is the policy that the file asks for, or that of the agent; the zero value leaves it to the runtime, where
// hooks that decide fail closed.
func (p *plugin) onFailure(h *agent.Hook) phases.OnFailure {
	open := phases.OnFailure{Default: phases.BestEffort}
	switch {
	case h.Background || !h.Step.Forbids():
		return phases.OnFailure{}
	case h.OnFailure == "block" && h.Step != agent.StepStop:
		return phases.OnFailure{Default: phases.FailClosed}
	case h.OnFailure == "continue":
		return open
	case p.config.AsHost && h.Agent.Scripts.CrashDenies && h.Step == agent.StepToolCall: // a crash denies there, a timeout does not
		return phases.OnFailure{Default: phases.FailClosed, ByCause: map[phases.Cause]phases.FailureWord{phases.CauseTimeout: phases.BestEffort}}
	case p.config.AsHost:
		return open
	}
	return phases.OnFailure{}
}

// call makes a subscription to tool.pre_call. Guards judge what goes on, at the same time; those that rewrite come first,
// one by one.
func (p *plugin) call(h *agent.Hook, one *sdk.Hook) {
	one.Needs = []string{"arguments"}
	if !h.Background {
		one.Role, one.Kinds = phases.RoleValidate, []phases.Kind{phases.KindDecision, phases.KindReminder}
	}
	if slices.Contains(p.config.Rewrites, h.ID) {
		one.Role, one.Kinds = phases.RoleTransform, append(one.Kinds, phases.KindRewrite)
	}
	one.ToolPreCall = runs(p, h, func(in *phases.ToolPreCallInput) agent.Facts {
		return agent.Facts{Tool: in.Tool, Arguments: in.Arguments, Paths: in.TouchedPaths}
	})
}

// session subscribes to the phases of a session's beginning that the matcher can accept.
func (p *plugin) session(h *agent.Hook, one sdk.Hook) (hooks []sdk.Hook) {
	one.Kinds = []phases.Kind{phases.KindPromptContext}
	if scripts.Matches(h, &agent.Facts{Source: "startup"}) || scripts.Matches(h, &agent.Facts{Source: "clear"}) {
		start := one
		start.Needs = []string{"source"}
		start.SessionStart = runs(p, h, func(in *phases.SessionStartInput) agent.Facts {
			return agent.Facts{Source: cmp.Or(in.Source, "startup")}
		})
		hooks = append(hooks, start)
	}
	if scripts.Matches(h, &agent.Facts{Source: "resume"}) {
		resume := one
		resume.Name += "-resume"
		resume.SessionResume = runs(p, h, func(_ *phases.SessionResumeInput) agent.Facts { return agent.Facts{Source: "resume"} })
		hooks = append(hooks, resume)
	}
	if h.Agent.Scripts.AfterCompaction && scripts.Matches(h, &agent.Facts{Source: "compact"}) {
		compact := one
		compact.Name, compact.Kinds = one.Name+"-compact", []phases.Kind{phases.KindReminder}
		compact.PostCompaction = runs(p, h, func(_ *phases.PostCompactionInput) agent.Facts { return agent.Facts{Source: "compact"} })
		hooks = append(hooks, compact)
	}
	return hooks
}

// prompt subscribes twice: the script judges the message in turn.pre_policy, which takes no text for the model; what it
// brought is handed out in turn.pre_prompt_context.
func (p *plugin) prompt(h *agent.Hook, one sdk.Hook) []sdk.Hook {
	one.Needs = []string{"user_text", "model"}
	key := func(c *sdk.Call) string { return h.ID + "\x00" + c.Context.WorkspaceID + "\x00" + c.Context.TurnID }
	one.PrePolicy = func(ctx context.Context, c *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
		a, err := p.run(ctx, h, p.facts(c, agent.Facts{Prompt: in.UserText.Value, Model: in.Model}))
		if err != nil {
			return nil, err
		}
		if a == nil {
			return sdk.Filtered()
		}
		if a.Verdict != phases.VerdictDeny {
			p.keep(key(c), a.Context)
		}
		a.Context = nil
		return p.contributions(h, a)
	}
	if h.Silent() { // who drops what such a hook answers
		one.Role = phases.RoleObserve
		return []sdk.Hook{one}
	}
	one.Role, one.Kinds = phases.RoleValidate, []phases.Kind{phases.KindDecision}
	brings := sdk.Hook{
		Name: h.ID + "-context", Doc: "what " + h.ID + " brought for the model", Kinds: []phases.Kind{phases.KindPromptContext}, Needs: []string{phases.NeedsNothing},
		PrePromptContext: func(_ context.Context, c *sdk.Call, _ *phases.PrePromptContextInput) ([]phases.Contribution, error) {
			return contexts(p.take(key(c))), nil
		},
	}
	return []sdk.Hook{one, brings}
}

// turnEnd subscribes to turn.post_turn, for the hooks of turns that ended in some way.
func (p *plugin) turnEnd(h *agent.Hook, one *sdk.Hook) {
	one.Role, one.Needs = phases.RoleObserve, []string{"status", "error", "assistant_text"}
	want := map[agent.Step]phases.TurnStatus{
		agent.StepFailed: phases.TurnProviderFailure, agent.StepInterrupted: phases.TurnInterrupted, agent.StepText: phases.TurnSucceeded,
	}[h.Step]
	one.PostTurn = func(ctx context.Context, c *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
		if in.Status != want {
			return sdk.Filtered()
		}
		text := in.Error.Text
		if h.Step == agent.StepText {
			text = in.AssistantText.Text
		}
		return p.answer(ctx, h, p.facts(c, agent.Facts{Text: text}))
	}
}

// facts completes what a phase knows by what every call has.
func (p *plugin) facts(c *sdk.Call, f agent.Facts) *agent.Facts {
	f.Session, f.Turn, f.Agent, f.CallID = c.Context.SessionID, c.Context.TurnID, c.Context.AgentID, c.IdempotencyKey
	f.Dir, f.Now, f.Transcript = c.Context.Dir, c.Context.Now, p.transcript
	if name, ok := p.config.Tools[f.Tool]; ok {
		f.Tool = name
	}
	return &f
}

// answer runs a handler, unless it is not for this, and returns its contributions.
func (p *plugin) answer(ctx context.Context, h *agent.Hook, f *agent.Facts) ([]phases.Contribution, error) {
	a, err := p.run(ctx, h, f)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return sdk.Filtered()
	}
	return p.contributions(h, a)
}

// run runs a handler. Nil is one that is not for this.
func (p *plugin) run(ctx context.Context, h *agent.Hook, f *agent.Facts) (*agent.Answer, error) {
	if !scripts.Matches(h, f) {
		return nil, nil //nolint:nilnil // as the comment says
	}
	payload, err := scripts.Payload(h, f)
	if err != nil {
		return nil, fmt.Errorf("the payload of %s: %w", h.Title(), err)
	}
	out, err := execute(ctx, h, f, payload)
	if err == nil {
		var a agent.Answer
		if a, err = scripts.Answer(h, out, f); err == nil {
			return &a, nil
		}
	}
	if failure, ok := errors.AsType[*agent.Failure](err); ok {
		return nil, sdk.Fail(failure.Code, sdk.CleanText(failure.Message))
	}
	return nil, err
}

// contributions are what a script said, in Grapnel's words.
func (p *plugin) contributions(h *agent.Hook, a *agent.Answer) ([]phases.Contribution, error) {
	if a.Arguments != nil && !slices.Contains(p.config.Rewrites, h.ID) {
		return nil, sdk.Fail("rewrite_not_declared", fmt.Sprintf("%s rewrites the arguments of calls: add %s to \"rewrites\" in the configuration of the plugin", h.Title(), h.ID))
	}
	var out []phases.Contribution
	if a.Verdict != "" {
		out = append(out, &phases.Decision{Verdict: a.Verdict, Reason: clean(a.Reason), ReasonCode: "command_hook"})
	}
	if a.Arguments != nil {
		out = append(out, &phases.Rewrite{Value: a.Arguments})
	}
	if a.Result != nil {
		out = append(out, &phases.Rewrite{Value: agent.Marshal(sdk.CleanText(*a.Result))})
	}
	if h.Step == agent.StepSessionStart || h.Step == agent.StepCompact || h.Step == agent.StepOnlyCompact {
		out = append(out, contexts(a.Context)...)
	} else {
		for _, text := range a.Context {
			out = append(out, &phases.Reminder{Type: "hook.context", Attributes: map[string]string{"hook": h.ID}, Text: sdk.CleanText(text)})
		}
	}
	say := func(code, text string, severity phases.Severity) {
		out = append(out, &phases.ManifestDiagnostic{Code: code, Message: clean(text), Severity: severity, SafeForUser: true})
	}
	for _, note := range a.Note {
		say("hook_message", note, phases.SeverityInfo)
	}
	if a.Ignored != "" {
		say("hook_answer_ignored", h.Title()+" answered what its agent does not read: "+a.Ignored, phases.SeverityWarning)
	}
	if len(a.Lost) > 0 {
		say("hook_not_carried", "Grapnel cannot do what the hook asked for: "+strings.Join(a.Lost, ", "), phases.SeverityWarning)
	}
	return out, nil
}

func contexts(texts []string) (out []phases.Contribution) {
	for _, text := range texts {
		out = append(out, &phases.PromptContext{Content: sdk.CleanText(text)})
	}
	return out
}

func clean(text string) string { return sdk.CutText(sdk.CleanText(text), maxText) }

func (p *plugin) keep(key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept.Put("", key, texts)
}

func (p *plugin) take(key string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	texts, _ := p.kept.Get(key)
	p.kept.Drop(key)
	return texts
}

// Describe is what hooks subscribe to, if those of the given names rewrite arguments.
func Describe(handlers []agent.Hook, rewrites []string) []phases.Hook {
	p := &plugin{config: config{Rewrites: rewrites}, handlers: handlers}
	described, err := (&sdk.Plugin{Name: "commandhooks", Version: "0", Hooks: p.hooks()}).Describe(context.Background())
	if err != nil {
		return nil
	}
	return described.Hooks
}

// Phases are the phases that one hook subscribes to.
func Phases(h *agent.Hook) (out []phases.Phase) {
	for _, d := range Describe([]agent.Hook{*h}, nil) {
		out = append(out, d.Phase)
	}
	return out
}
