package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// Options configure a turn. The zero value has no message, offers no tools, and asks nobody.
type Options struct {
	// Input is compiled into each prompt. Names and definitions of Tools are added to it, and ToolCalling is set
	// if there are any. Without ToolCalling no tools are offered.
	Input runtime.CompileInput
	// Tools are the host's own tools.
	Tools []Tool
	// Ask asks a person to allow what a hook neither allowed nor denied. It may be called concurrently. Nil, an error and
	// the end of ctx mean no, except for [ErrNotYet].
	Ask func(ctx context.Context, about *Refused) (bool, error)
	// TellsRefusals says that the host's answer to a refused call tells the model so: no reminder repeats it.
	TellsRefusals bool
	// Judged, if set, is called with the outcome of each judgement of a call, before anybody is asked. It may be called
	// concurrently, and must not change the outcome.
	Judged func(ctx context.Context, c Call, out *phases.Outcome)
	// MaxResultChars limits the text of one tool's result, in Unicode scalar values; 0 means no limit.
	MaxResultChars int
	// KeepResult, if set, stores a result that is about to be trimmed, and returns how the model can get the rest.
	KeepResult func(ctx context.Context, c Call, text string) (how string)

	_ struct{}
}

// Tool is one of the host's own tools.
type Tool struct {
	phases.Tool

	// Call answers a call. An error becomes a result, so the model sees it. Nil means that the host calls the tool itself,
	// by [Turn.RunTool].
	Call func(ctx context.Context, arguments json.RawMessage) (string, error)
	// Paths returns the files and directories that a call is about, if any; may be nil.
	Paths func(arguments json.RawMessage) []string
}

// Turn is one turn of a host, or one agent's part in it.
//
//  1. Begin makes it, unless a hook refuses the message.
//  2. Prompt, once a round; Used, when the model has answered; Tool, for each of its calls.
//  3. GoOn, when the model calls no tool: another round, if a plugin wants one.
//  4. Done, always.
//
// Tools may be called concurrently. Input may be changed between two prompts.
type Turn struct {
	*runtime.Turn

	// Input is compiled into the next prompt.
	Input runtime.CompileInput

	options Options
	sum     *sum
}

// sum collects what all agents of a turn have done.
type sum struct {
	mu     sync.Mutex
	usage  phases.Usage
	events []phases.ToolEvent
	// message is the user's in the first prompt.
	message phases.Preview
	// asks are calls that wait for a person's answer ([ErrNotYet]).
	asks map[callKey]Refused
}

// Begin begins a turn and lets the plugins judge its message (turn.pre_policy). If a hook refused it, the error is a
// *[Refused], and the turn has ended as blocked. Other errors come from [runtime.Engine.BeginTurn].
func Begin(ctx context.Context, eng *runtime.Engine, where phases.Context, o Options) (*Turn, error) {
	begun, err := eng.BeginTurn(ctx, where)
	if err != nil {
		return nil, err
	}
	t := newTurn(begun, o, &sum{})
	out, err := t.Dispatch(ctx, &phases.PrePolicyInput{UserText: phases.T(o.Input.UserText), Model: o.Input.Model, Provider: o.Input.Provider})
	if err := t.decide(ctx, out, err, &Refused{Phase: phases.PrePolicy}); err != nil {
		return nil, t.Done(ctx, "", err)
	}
	return t, nil
}

// Wrap returns the loop of a turn that the host has begun itself. The plugins judge its message with the first prompt.
func Wrap(begun *runtime.Turn, o Options) *Turn { return newTurn(begun, o, &sum{}) }

func newTurn(of *runtime.Turn, o Options, s *sum) *Turn {
	t := &Turn{Turn: of, Input: o.Input, options: o, sum: s}
	t.Input.HostTools = slices.Clip(t.Input.HostTools)
	t.Input.ToolCalling = t.Input.ToolCalling || len(o.Tools) > 0
	for i := range o.Tools {
		t.Input.HostTools = append(t.Input.HostTools, o.Tools[i].Tool)
	}
	return t
}

// ForAgent returns the same turn for another agent of the host, with its own options; see [runtime.Turn.ForAgent].
// Usage and calls count for the whole turn, which ends once.
func (t *Turn) ForAgent(id string, o Options) (*Turn, error) {
	other, err := t.Turn.ForAgent(id)
	if err != nil {
		return nil, err
	}
	return newTurn(other, o, t.sum), nil
}

// In returns the same turn for the calls of tools that run in another directory; see [runtime.Turn.In].
func (t *Turn) In(dir string) *Turn {
	other := *t
	other.Turn = t.Turn.In(dir)
	return &other
}

// Prompt is what one round sends to the model besides the conversation.
type Prompt struct {
	*compiler.Prompt

	// Tools are all tools to offer, including the host's, sorted by name.
	Tools []phases.Tool
	// Reminders are messages to append to the conversation, in order. They stay there: no later prompt repeats them.
	Reminders []string
	// Manifest is the record of the prompt.
	Manifest *manifest.Manifest
}

// Compile is [runtime.Turn.Compile]. Calls that still wait for a person's answer ([ErrNotYet]) are denied first.
func (t *Turn) Compile(ctx context.Context, in runtime.CompileInput) (*runtime.Compiled, error) {
	t.sum.hear(in.UserText)
	for _, r := range t.denyWaiting() {
		if err := t.remindOf(&r, "no"); err != nil {
			return nil, err
		}
	}
	return t.Turn.Compile(ctx, in)
}

// hear keeps the turn's first message, for its end.
func (s *sum) hear(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.message.IsZero() {
		s.message = phases.NewPreview(clean(text), phases.MaxTurnText)
		s.message.Text = strings.Clone(s.message.Text) // not to retain the whole message
	}
}

// Prompt compiles the prompt of the next round ([Turn.Compile]). An error is a *[Refused] if a hook refused the turn or
// the prompt.
func (t *Turn) Prompt(ctx context.Context) (*Prompt, error) {
	done, err := t.Compile(ctx, t.Input)
	if coded, ok := errors.AsType[*phases.Error](err); ok && done != nil && ctx.Err() == nil {
		return nil, refusedBy(coded)
	}
	if err != nil {
		return nil, err
	}
	p := &Prompt{Prompt: done.Prompt, Manifest: done.Manifest}
	if t.Input.ToolCalling {
		p.Tools = slices.Concat(t.Input.HostTools, done.Tools)
	}
	slices.SortStableFunc(p.Tools, func(a, b phases.Tool) int { return strings.Compare(a.Name, b.Name) })
	for i := range done.Reminders {
		p.Reminders = append(p.Reminders, sdk.Reminder(&done.Reminders[i]))
	}
	return p, nil
}

// HandReminders is [runtime.Turn.HandReminders] with the reminders as texts, as in [Prompt]. It calls fits with the text
// of each.
func (t *Turn) HandReminders(with phases.Phase, fits func(text string) bool) ([]string, error) {
	var texts []string
	_, err := t.Turn.HandReminders(with, func(r *phases.MergedReminder) bool {
		text := sdk.Reminder(r)
		if !fits(text) {
			return false
		}
		texts = append(texts, text)
		return true
	})
	return texts, err
}

// Used records the usage that the provider reported for the last prompt, and how the request differed from it (the Changes
// of a provider's adapter). A zero usage means unknown. Do not fail the turn because of an error.
func (t *Turn) Used(ctx context.Context, u phases.Usage, changes ...manifest.RequestChange) error {
	if u == (phases.Usage{}) {
		return t.ReportRequest(changes)
	}
	err := t.ReportUsage(ctx, u)
	if _, coded := errors.AsType[*phases.Error](err); err != nil && !coded {
		return err // there is no prompt, or the usage makes no sense
	}
	t.sum.mu.Lock()
	t.sum.usage = t.sum.usage.Add(u)
	t.sum.mu.Unlock()
	return errors.Join(err, t.ReportRequest(changes))
}

// ProviderError marks an error as the provider's; it sets the turn's status.
type ProviderError struct{ Err error }

// Error implements error.
func (e *ProviderError) Error() string { return e.Err.Error() }

// Unwrap returns the provider's error.
func (e *ProviderError) Unwrap() error { return e.Err }

// GoOn lets the plugins judge whether the turn may end (turn.pre_end), by the model's last text and short descriptions
// of unfinished tasks. If there is a reason, the turn must go on: append the model's text and, as a user message, the
// reason to the conversation, and call [Turn.Prompt] again. Without a reason the turn may end, even if plugins
// failed. A turn goes on at most [phases.MaxForced] times. An error means that it cannot go on.
func (t *Turn) GoOn(ctx context.Context, text string, openTasks ...string) (reason string, err error) {
	in := &phases.PreEndInput{Text: phases.T(clean(text))}
	for _, task := range openTasks {
		in.OpenTasks = append(in.OpenTasks, clean(task))
	}
	end, err := t.PreEnd(ctx, in)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case end != nil:
		return end.Reason, nil
	case phases.CodeOf(err) == phases.CauseBudgetExhausted: // the ledger is full
		return "", nil
	}
	return "", err
}

// Done ends the turn with the model's last text, or with the error that ended it, and returns that error. A *[Refused] ends
// it as blocked, a *[ProviderError] as a provider's failure, context.Canceled as interrupted. The turn ends even if ctx is
// done. A second call changes nothing.
func (t *Turn) Done(ctx context.Context, text string, err error) error {
	end := &phases.PostTurnInput{
		Status: statusOf(err), UserText: phases.NewPreview(clean(t.Input.UserText), phases.MaxTurnText), AssistantText: phases.NewPreview(clean(text), phases.MaxTurnText),
	}
	if err != nil {
		end.Error = phases.NewPreview(clean(err.Error()), phases.MaxTurnError)
	}
	if _, ended := t.End(ctx, end); ended != nil {
		return errors.Join(err, ended)
	}
	return err
}

// End is [runtime.Turn.End], for a host that does not use Done. It fills in what is missing in in: the usage and the calls
// of all rounds, and the user's message of the first prompt. It denies calls that still wait for a person's answer.
func (t *Turn) End(ctx context.Context, in *phases.PostTurnInput) (*phases.Outcome, error) {
	t.denyWaiting()
	var end phases.PostTurnInput
	if in != nil {
		end = *in
	}
	t.sum.mu.Lock()
	end.Usage = cmp.Or(end.Usage, t.sum.usage)
	if end.ToolEvents == nil {
		end.ToolEvents = slices.Clone(t.sum.events)
	}
	if end.UserText.IsZero() {
		end.UserText = t.sum.message
	}
	t.sum.mu.Unlock()
	return t.Turn.End(ctx, &end)
}

func statusOf(err error) phases.TurnStatus {
	_, refused := errors.AsType[*Refused](err)
	_, provider := errors.AsType[*ProviderError](err)
	switch {
	case err == nil:
		return phases.TurnSucceeded
	case refused:
		return phases.TurnBlocked
	case errors.Is(err, context.Canceled):
		return phases.TurnInterrupted
	case provider:
		return phases.TurnProviderFailure
	}
	return phases.TurnFailed
}
