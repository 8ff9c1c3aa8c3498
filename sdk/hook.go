package sdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Handler answers one call of a hook whose phase has the input I. The input and
// everything in the call belong to the handler; what it returns belongs to the
// host. It must return when ctx ends.
type Handler[I any] func(ctx context.Context, call *Call, in I) ([]phases.Contribution, error)

// ToolHandler answers one call of a tool.
type ToolHandler func(ctx context.Context, call *ToolCall) (*phases.ToolResult, error)

// Tool is one tool with its handler.
type Tool struct {
	phases.Tool
	// Call answers one call. The arguments are JSON that a model made up: check
	// them.
	Call ToolHandler
}

// Hook is one subscription as the plugin would like it, with exactly one
// handler. The operator's file may change every field but the handler.
type Hook struct {
	// Name is unique in the plugin; the subscription's id is PLUGIN.NAME.
	Name string
	// Doc is one line for people.
	Doc string
	// Kinds are the contribution kinds that the hook may answer with.
	Kinds []phases.Kind
	// Role is phases.RoleContribute if empty; see phases.Role.
	Role phases.Role
	// Priority: higher is more important, everywhere.
	Priority int
	// After and Before are full subscription ids, "?" at the end for soft ones.
	After, Before []string
	// Needs are what the handler must see to do its work: input fields by JSON name
	// ("arguments"), "policy", "context", "metadata". A hook that decides is not run
	// where the operator does not grant them, instead of judging what it was not
	// shown; one that looks at none of them says phases.NeedsNothing.
	Needs []string
	// When is a condition; empty means always. It may name what the operator lets
	// the plugin see.
	When string
	// Timeout of 0 means min(1 s, the phase's budget).
	Timeout time.Duration
	// OnFailure of zero means fail closed for hooks that decide, best effort for
	// others.
	OnFailure phases.OnFailure
	// Fallback is used where OnFailure says fallback.
	Fallback []phases.Contribution
	// Idempotent says that calling twice does no harm; Retry needs it.
	Idempotent bool
	Retry      *phases.Retry
	// Budget bounds what is kept of the hook's text.
	Budget phases.TextBudget
	// Cache lets the host answer from memory.
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
	PostTurn          Handler[*phases.PostTurnInput]
	PreCompaction     Handler[*phases.PreCompactionInput]
	PostCompaction    Handler[*phases.PostCompactionInput]
	SessionEnd        Handler[*phases.SessionEndInput]

	// Phase and Any serve a host's own phase ("x.<host>.…", with a
	// *phases.CustomInput), or any phase that only the configuration names.
	Phase phases.Phase
	Any   Handler[phases.Input]

	_ struct{}
}

// binding is a hook's one handler, with its input's type forgotten.
type binding struct {
	phase  phases.Phase
	handle Handler[phases.Input]
}

// custom returns the row of a host's own phase.
func (b binding) custom() []phases.Row {
	if strings.HasPrefix(string(b.phase), "x.") {
		return []phases.Row{phases.Custom(b.phase, "", 0, phases.Kinds()...)}
	}
	return nil
}

// bind finds the hook's handler.
func (h *Hook) bind() (binding, error) {
	all := []binding{
		typed(h.SessionStart), typed(h.SessionResume), typed(h.PrePolicy), typed(h.PrePromptContext), typed(h.PostPreflight),
		typed(h.PreTools), typed(h.PrePromptCompile), typed(h.PostPromptCompile), typed(h.RuntimePreContext), typed(h.ToolPreCall),
		typed(h.ToolPostCall), typed(h.PostTurn), typed(h.PreCompaction), typed(h.PostCompaction), typed(h.SessionEnd),
		{phase: h.Phase, handle: h.Any},
	}
	var found []binding
	for _, b := range all {
		if b.handle != nil {
			found = append(found, b)
		}
	}
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

// typed forgets the input's type; a nil handler gives an empty binding.
func typed[T any, P interface {
	*T
	phases.Input
}](h Handler[P]) binding {
	if h == nil {
		return binding{}
	}
	phase := P(new(T)).Phase()
	return binding{phase, func(ctx context.Context, call *Call, in phases.Input) ([]phases.Contribution, error) {
		input, ok := in.(P)
		if !ok {
			return nil, Fail("wrong_input", fmt.Sprintf("want the input of %s, got %T", phase, in))
		}
		return h(ctx, call, input)
	}}
}

// proposal is the hook as data.
func (h *Hook) proposal(phase phases.Phase) phases.Hook {
	return phases.Hook{
		Name: h.Name, Doc: h.Doc, Phase: phase, Kinds: h.Kinds, Role: h.Role, Priority: h.Priority, After: h.After, Before: h.Before,
		When: h.When, Timeout: phases.Duration(h.Timeout), OnFailure: h.OnFailure, Fallback: h.Fallback, Retry: h.Retry,
		Needs: h.Needs, Idempotent: h.Idempotent, Budget: h.Budget, Cache: h.Cache, Shadow: h.Shadow, Visibility: h.Visibility,
	}
}
