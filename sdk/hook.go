package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Handler answers one call of a hook whose phase has the input I. Input and call belong to the handler, the answer to
// the host. It must return when ctx ends.
type Handler[I any] func(ctx context.Context, call *Call, in I) ([]phases.Contribution, error)

// ToolHandler answers one call of a tool.
type ToolHandler func(ctx context.Context, call *ToolCall) (*phases.ToolResult, error)

// Tool is one tool with its handler.
type Tool struct {
	phases.Tool
	// Call answers one call. The arguments are JSON from a model: check them.
	Call ToolHandler
}

// Hook is one subscription as the plugin proposes it, with exactly one handler. The operator can change every field
// except the handler.
type Hook struct {
	// Name is unique in the plugin; the subscription's id is PLUGIN.NAME.
	Name string
	// Doc is one line for people.
	Doc string
	// Kinds are the contribution kinds that the hook may answer with.
	Kinds []phases.Kind
	// Role is phases.RoleContribute if empty.
	Role phases.Role
	// Priority: higher is more important, everywhere.
	Priority int
	// After and Before are full subscription ids; one that ends in "?" may be absent.
	After, Before []string
	// Needs are what the handler must see: input fields by JSON name ("arguments"), "policy", "context", "metadata".
	// A deciding hook does not run if the operator does not grant them. If it needs nothing, set
	// phases.NeedsNothing.
	Needs []string
	// When is a condition on what the plugin may see; empty means always.
	When string
	// Timeout of 0 means min(1 s, the phase's budget).
	Timeout time.Duration
	// OnFailure of zero means fail closed for hooks that decide, except at turn.pre_end, and best effort for others.
	OnFailure phases.OnFailure
	// Fallback is used if OnFailure says fallback.
	Fallback []phases.Contribution
	// Idempotent says that calling twice does no harm; Retry needs it.
	Idempotent bool
	Retry      *phases.Retry
	// Budget limits how much of the hook's text is kept.
	Budget phases.TextBudget
	// Cache lets the host answer from its cache.
	Cache *phases.Cache
	// Shadow runs the hook and applies nothing.
	Shadow     bool
	Visibility phases.Visibility

	SessionStart      Handler[*phases.SessionStartInput]
	SessionResume     Handler[*phases.SessionResumeInput]
	PrePolicy         Handler[*phases.PrePolicyInput]
	PrePromptContext  Handler[*phases.PrePromptContextInput]
	PostPreflight     Handler[*phases.PostPreflightInput]
	PreTools          Handler[*phases.PreToolsInput]
	PrePromptCompile  Handler[*phases.PrePromptCompileInput]
	PostPromptCompile Handler[*phases.PostPromptCompileInput]
	RuntimePreContext Handler[*phases.RuntimePreContextInput]
	ToolPreCall       Handler[*phases.ToolPreCallInput]
	ToolPostCall      Handler[*phases.ToolPostCallInput]
	PreEnd            Handler[*phases.PreEndInput]
	PostTurn          Handler[*phases.PostTurnInput]
	PreCompaction     Handler[*phases.PreCompactionInput]
	PostCompaction    Handler[*phases.PostCompactionInput]
	SessionEnd        Handler[*phases.SessionEndInput]

	// Phase and Any handle a host's own phase ("x.<host>.…", with a *phases.CustomInput), or any phase that only the
	// configuration names.
	Phase phases.Phase
	Any   Handler[phases.Input]

	_ struct{}
}

// binding is a hook's one handler, with its input's type erased.
type binding struct {
	phase  phases.Phase
	handle Handler[phases.Input]
}

func (h *Hook) bind() (binding, error) {
	found := slices.DeleteFunc([]binding{
		typed(h.SessionStart), typed(h.SessionResume), typed(h.PrePolicy), typed(h.PrePromptContext), typed(h.PostPreflight),
		typed(h.PreTools), typed(h.PrePromptCompile), typed(h.PostPromptCompile), typed(h.RuntimePreContext), typed(h.ToolPreCall),
		typed(h.ToolPostCall), typed(h.PreEnd), typed(h.PostTurn), typed(h.PreCompaction), typed(h.PostCompaction), typed(h.SessionEnd),
		{phase: h.Phase, handle: h.Any},
	}, func(b binding) bool { return b.handle == nil })
	switch {
	case len(found) != 1:
		return binding{}, fmt.Errorf("has %d handlers; set exactly one of the handler fields", len(found))
	case h.Any != nil && h.Phase == "":
		return binding{}, errors.New("sets the handler Any, which needs Phase")
	case h.Any == nil && h.Phase != "":
		return binding{}, errors.New("sets Phase, which goes with the handler Any; the other handlers say their phase")
	}
	return found[0], nil
}

// typed erases the input's type; a nil handler gives an empty binding.
func typed[T any, P interface {
	*T
	phases.Input
}](h Handler[P]) binding {
	if h == nil {
		return binding{}
	}
	phase := phases.PhaseOf(P(new(T)))
	return binding{phase, func(ctx context.Context, call *Call, in phases.Input) ([]phases.Contribution, error) {
		input, ok := in.(P)
		if !ok {
			return nil, Fail("wrong_input", fmt.Sprintf("want the input of %s, got %T", phase, in))
		}
		return h(ctx, call, input)
	}}
}

func (h *Hook) proposal(phase phases.Phase) phases.Hook {
	return phases.Hook{
		Name: h.Name, Doc: h.Doc, Phase: phase, Kinds: h.Kinds, Role: h.Role, Priority: h.Priority, After: h.After, Before: h.Before,
		When: h.When, Timeout: phases.Duration(h.Timeout), OnFailure: h.OnFailure, Fallback: h.Fallback, Retry: h.Retry,
		Needs: h.Needs, Idempotent: h.Idempotent, Budget: h.Budget, Cache: h.Cache, Shadow: h.Shadow, Visibility: h.Visibility,
	}
}

// Call is what a handler gets besides its input: the dispatch (context, budgets, the sets it may see, trace) and the
// host.
type Call struct {
	*phases.Dispatch
	// Host answers host services. It is nil before the first Configure.
	Host phases.Host
}

// Policy returns the value of a policy that is set and may be seen.
func (c *Call) Policy(domain, key string) (json.RawMessage, bool) {
	return policyOf(c.Policies, domain, key)
}

// ToolCall is what a tool gets: the call (arguments, context, visible policies, whether a turn made it) and the host.
type ToolCall struct {
	*phases.ToolCall
	// Host answers host services.
	Host phases.Host
}

// Policy returns the value of a policy of the turn that is set and may be seen; outside a turn there is none.
func (c *ToolCall) Policy(domain, key string) (json.RawMessage, bool) {
	return policyOf(c.Policies, domain, key)
}

func policyOf(list []phases.PolicyEntry, domain, key string) (json.RawMessage, bool) {
	for i := range list {
		if list[i].Domain == domain && list[i].Key == key {
			return list[i].Value, true
		}
	}
	return nil, false
}

// Reply returns its arguments as an answer, for return statements.
func Reply(cs ...phases.Contribution) ([]phases.Contribution, error) { return cs, nil }

// Filtered returns the answer of a hook that does not apply to its input and did nothing: its run is filtered, not succeeded.
func Filtered() ([]phases.Contribution, error) {
	return Reply(&phases.Noop{Common: phases.Common{ContributionID: phases.IDFiltered}})
}

// Text returns a plain text answer of a tool.
func Text(s string) *phases.ToolResult {
	content, err := json.Marshal(s)
	if err != nil {
		content = []byte(`""`) // a string always encodes
	}
	return &phases.ToolResult{Content: content}
}

// Fail returns an error with the plugin's own code, such as "upstream_down". The operator's failure policy
// decides what happens then.
func Fail(code, message string) *phases.Error {
	return &phases.Error{Code: phases.CausePluginError, PluginCode: code, Message: message}
}

func asFailure(err error) error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	failure := Fail("error", err.Error())
	failure.Err = err
	return failure
}

func recovered(err *error) {
	if r := recover(); r != nil {
		*err = Fail(phases.PluginCodePanic, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
	}
}
