package telemetry_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/telemetry"
)

// TestDecisionRefOfSpans: the spans of a hook that decided and of a call of a tool name the prompt in force, as the span of its
// record does; those of other hooks do not.
func TestDecisionRefOfSpans(t *testing.T) {
	t.Parallel()
	search := phases.Tool{Name: "search", InputSchema: json.RawMessage(`{"type": "object"}`)}
	house := &sdk.Plugin{
		Name: "house", Version: "1.0.0",
		Tools: []sdk.Tool{{Tool: search, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return &phases.ToolResult{}, nil }}},
		Hooks: []sdk.Hook{
			{Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.ToolBundle{BundleID: "house", Tools: []phases.Tool{search}})
			}},
			{Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, ToolPreCall: func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no"})
			}},
			{Name: "idle", ToolPreCall: func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				return nil, nil
			}},
		},
	}
	r := newRig(t, telemetry.Options{})
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "house", Grants: everything()}}}
	eng, err := runtime.New(t.Context(), cfg, r.Attach(runtime.Options{InProcess: map[string]runtime.Plugin{"house": house}, Sink: &numbered{}}))
	if err != nil {
		t.Fatal(err)
	}
	turn, err := eng.BeginTurn(t.Context(), phases.Context{ThreadID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "search"}); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "search"}); err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := "grapnel.manifest.id=" + done.Manifest.ManifestID
	ref := "grapnel.decision_ref=" + done.Manifest.ManifestID + "/17"
	want := map[string]bool{"grapnel.subscription=house.guard": true, "gen_ai.tool.name=search": true, "grapnel.subscription=house.idle": false}
	for _, s := range r.spans.GetSpans() {
		has := attributes(s)
		for who, refers := range want {
			if !slices.Contains(has, who) {
				continue
			}
			delete(want, who)
			if slices.Contains(has, id) != refers || slices.Contains(has, ref) != refers {
				t.Errorf("%s has %q, want %s and %s: %v", s.Name, has, id, ref, refers)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("there are no spans of %v", want)
	}
}

// numbered is a sink that gives each record the same number.
type numbered struct{ memory }

func (s *numbered) Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	m.Seq = 17
	return s.memory.Append(ctx, m, texts)
}
