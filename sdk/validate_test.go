package sdk_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	answer := func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) { return sdk.Reply() }
	greet := compileHook("greet")
	change := func(h sdk.Hook, set func(*sdk.Hook)) sdk.Hook {
		set(&h)
		return h
	}
	tool := func(name string) sdk.Tool {
		return sdk.Tool{Tool: phases.Tool{Name: name}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return sdk.Text(""), nil }}
	}
	tests := []struct {
		name string
		p    *sdk.Plugin
		want []string // parts of the message; none means valid
	}{
		{"valid", plugin(greet), nil},
		{"no hooks", plugin(), nil},
		{"a host's own phase", plugin(sdk.Hook{Name: "h", Phase: "x.acme.idle", Any: answer}, sdk.Hook{Name: "i", Phase: "x.acme.idle", Any: answer}), nil},
		{"any handler of a standard phase", plugin(sdk.Hook{Name: "h", Phase: phases.SessionEnd, Any: answer}), nil},
		{"name", &sdk.Plugin{Name: "a.b", Version: "1"}, []string{`plugin "a.b"`, `name "a.b"`}},
		{"version", &sdk.Plugin{Name: "p"}, []string{`plugin "p"`, "no version"}},
		{"no handler", plugin(sdk.Hook{Name: "h"}), []string{`plugin "p"`, `hook "h"`, "has 0 handlers", "exactly one"}},
		{"phase without a handler", plugin(sdk.Hook{Name: "h", Phase: phases.SessionEnd}), []string{`hook "h"`, "has 0 handlers"}},
		{"two handlers", plugin(change(greet, func(h *sdk.Hook) { h.Any = answer })), []string{`hook "greet"`, "has 2 handlers", "exactly one"}},
		{"any without a phase", plugin(sdk.Hook{Name: "h", Any: answer}), []string{`hook "h"`, "Any", "needs Phase"}},
		{"phase with a typed handler", plugin(change(greet, func(h *sdk.Hook) { h.Phase = phases.PrePromptCompile })), []string{`hook "greet"`, "sets Phase"}},
		{"unknown phase", plugin(sdk.Hook{Name: "h", Phase: "turn.pre_polic", Any: answer}), []string{"hooks[0] (h)", `unknown phase "turn.pre_polic"`, `did you mean "turn.pre_policy"?`}},
		{"phase of a host without its name", plugin(sdk.Hook{Name: "h", Phase: "x.idle", Any: answer}), []string{`plugin "p"`, "x.<host>.<name>"}},
		{"hook twice", plugin(greet, greet), []string{`hook "greet" is registered twice`, "hooks[1]", "hooks[0]"}},
		{"kind that the phase does not take", plugin(change(greet, func(h *sdk.Hook) { h.Kinds = []phases.Kind{phases.KindPolicy} })), []string{"does not take policy"}},
		{"role", plugin(change(greet, func(h *sdk.Hook) { h.Role = phases.RoleValidate })), []string{"does not take the role validate"}},
		{"several mistakes at once", plugin(change(greet, func(h *sdk.Hook) { h.Timeout, h.Retry = -1, &phases.Retry{Attempts: 2} })), []string{"timeout", "idempotent"}},
		{"tool without a handler", &sdk.Plugin{Name: "p", Version: "1", Tools: []sdk.Tool{{Tool: phases.Tool{Name: "t"}}}}, []string{`plugin "p"`, `tool "t" has no handler`}},
		{"tool twice", &sdk.Plugin{Name: "p", Version: "1", Tools: []sdk.Tool{tool("t"), tool("t")}}, []string{`"t" is there twice`}},
		{"schema", &sdk.Plugin{Name: "p", Version: "1", ConfigSchema: json.RawMessage(`[]`)}, []string{"config_schema", "not a JSON object"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.p.Validate()
			if len(tt.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if _, again := tt.p.Describe(t.Context()); again == nil || again.Error() != err.Error() {
				t.Errorf("Describe says %v", again)
			}
			if _, err := tt.p.Dispatch(t.Context(), &phases.Dispatch{Hook: "h"}); err == nil {
				t.Error("Dispatch of an invalid plugin works")
			}
			if _, err := tt.p.CallTool(t.Context(), &phases.ToolCall{Tool: "t"}); err == nil {
				t.Error("CallTool of an invalid plugin works")
			}
			if _, err := configure(tt.p, ""); err == nil {
				t.Error("Configure of an invalid plugin works")
			}
		})
	}
}

// TestHookBecomesProposal sets every field of a hook and looks for it in the
// description.
func TestHookBecomesProposal(t *testing.T) {
	t.Parallel()
	p := plugin(sdk.Hook{
		Name: "h", Doc: "d", Kinds: []phases.Kind{phases.KindReminder}, Role: phases.RoleContribute, Priority: 7, After: []string{"a.b?"},
		Before: []string{"c.d"}, When: "true", Timeout: time.Second, OnFailure: phases.OnFailure{Default: phases.UseInstead},
		Fallback: []phases.Contribution{&phases.Reminder{Type: "t"}}, Idempotent: true, Retry: &phases.Retry{Attempts: 2},
		Budget: phases.TextBudget{Chars: 5}, Cache: &phases.Cache{Tags: []string{"x"}}, Shadow: true, Visibility: phases.VisibilityDebug,
		SessionStart: func(context.Context, *sdk.Call, *phases.SessionStartInput) ([]phases.Contribution, error) {
			return nil, nil
		},
	})
	p.Doc, p.Requires, p.Concurrency, p.ConfigSchema = "doc", []string{"tools"}, 3, json.RawMessage(`{}`)
	p.Tools = []sdk.Tool{{
		Tool: phases.Tool{Name: "t", Description: "d", InputSchema: json.RawMessage(`{}`), HiddenDomain: "z"},
		Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return nil, nil },
	}}
	want := &phases.Description{
		Name: "p", Version: "1", Doc: "doc", Requires: []string{"tools"}, ConfigSchema: json.RawMessage(`{}`), Limits: phases.PluginLimits{Concurrency: 3},
		Hooks: []phases.Hook{{
			Name: "h", Doc: "d", Phase: phases.SessionStart, Kinds: []phases.Kind{phases.KindReminder}, Role: phases.RoleContribute, Priority: 7,
			After: []string{"a.b?"}, Before: []string{"c.d"}, When: "true", Timeout: phases.Duration(time.Second),
			OnFailure: phases.OnFailure{Default: phases.UseInstead}, Fallback: phases.Contributions{&phases.Reminder{Type: "t"}}, Idempotent: true,
			Retry: &phases.Retry{Attempts: 2}, Budget: phases.TextBudget{Chars: 5}, Cache: &phases.Cache{Tags: []string{"x"}}, Shadow: true,
			Visibility: phases.VisibilityDebug,
		}},
		Tools: []phases.Tool{{Name: "t", Description: "d", InputSchema: json.RawMessage(`{}`), HiddenDomain: "z"}},
	}
	got, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
