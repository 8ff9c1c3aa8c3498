package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// recorder is a test that only writes down what was reported.
type recorder struct {
	ctx     context.Context
	reports []string
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	return &recorder{ctx: t.Context()}
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Errorf(format string, args ...any) {
	r.reports = append(r.reports, fmt.Sprintf(format, args...))
}

// expect asserts that there is one report for each text, in order, which holds
// the text.
func (r *recorder) expect(t *testing.T, want ...string) {
	t.Helper()
	if len(r.reports) != len(want) {
		t.Fatalf("%d reports, want %d:\n%s", len(r.reports), len(want), strings.Join(r.reports, "\n"))
	}
	for i := range want {
		if !strings.Contains(r.reports[i], want[i]) {
			t.Errorf("report %d is %q, want %q", i, r.reports[i], want[i])
		}
	}
}

// answering is a handler that answers with what answer gives.
func answering(answer func() ([]phases.Contribution, error)) sdk.Handler[*phases.PrePromptCompileInput] {
	return func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		return answer()
	}
}

// section is a new contribution of one text.
func section(text string) []phases.Contribution {
	return []phases.Contribution{&phases.PromptSection{SectionID: "s", Content: text}}
}

// plugin is a plugin with one hook "h".
func plugin(h sdk.Handler[*phases.PrePromptCompileInput]) *sdk.Plugin {
	return &sdk.Plugin{
		Name: "p", Version: "1",
		Hooks: []sdk.Hook{{Name: "h", Kinds: []phases.Kind{phases.KindPromptSection}, PrePromptCompile: h}},
	}
}

// echo answers with all that it is told, by its host and its configuration.
func echo() *sdk.Plugin {
	p := &sdk.Plugin{Name: "echo", Version: "1", ConfigSchema: json.RawMessage(`{"type": "object"}`)}
	p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
		config := string(c.Config) + strings.Join(c.Services, ",")
		hook := sdk.Hook{Name: "h", Kinds: []phases.Kind{phases.KindPromptSection}}
		hook.PrePromptCompile = func(ctx context.Context, call *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			now, err := call.Host.Call(ctx, "clock", "now", json.RawMessage(`{}`))
			if err != nil {
				return nil, err
			}
			value, _ := call.Policy("d", "k")
			return section(fmt.Sprintf("%s %s %s %s %v %s %d", config, call.Subscription, call.Context.Dir, now, in.AvailableTools, value, call.Budget.MaxChars)), nil
		}
		tool := sdk.Tool{Tool: phases.Tool{Name: "t"}, Call: func(_ context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
			return &phases.ToolResult{Content: call.Arguments, IsError: call.Context.Dir == ""}, nil
		}}
		policy := sdk.Tool{Tool: phases.Tool{Name: "policy"}, Call: func(_ context.Context, call *sdk.ToolCall) (*phases.ToolResult, error) {
			value, ok := call.Policy("d", "k")
			return sdk.Text(fmt.Sprintf("%s %v %v", value, ok, call.OutsideTurn)), nil
		}}
		return sdk.Setup{Hooks: []sdk.Hook{hook}, Tools: []sdk.Tool{tool, policy}}, nil
	}
	return p
}
