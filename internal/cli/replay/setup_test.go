package replay_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/cli/record"
	"github.com/grapnelhq/grapnel/internal/cli/replay"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// urgency asks a model, and a state, and says what it learned.
func urgency(change string) *sdk.Plugin {
	return &sdk.Plugin{
		Name: "urgency", Version: "1.0.0",
		Hooks: []sdk.Hook{{Name: "look", Kinds: []phases.Kind{phases.KindPromptContext}, PrePromptContext: func(ctx context.Context, c *sdk.Call, in *phases.PrePromptContextInput) ([]phases.Contribution, error) {
			if in.UserText.Value == "fail" {
				return nil, sdk.Fail("down", "at "+time.Now().String())
			}
			res, err := sdk.Complete(ctx, c.Host, phases.CompletionRequest{Input: change + in.UserText.Value, MaxOutputTokens: 20})
			if err != nil {
				return sdk.Reply(&phases.PromptContext{Content: "no model: " + string(phases.CodeOf(err))})
			}
			state, err := c.Host.Call(ctx, "state", "get", json.RawMessage(`{"session_id": "s"}`))
			if err != nil {
				return nil, err
			}
			return sdk.Reply(&phases.PromptContext{Content: res.Text + " " + string(state) + " " + c.Context.Now.Format(time.TimeOnly)}, &phases.Noop{})
		}}},
		Tools: []sdk.Tool{{Tool: phases.Tool{Name: "look", Description: "Looks."}, Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text(change + string(c.Arguments)), nil
		}}},
	}
}

// engine runs the plugin inside the host.
func engine(t *testing.T, p *sdk.Plugin, o runtime.Options) *runtime.Engine {
	t.Helper()
	all := []string{"*"}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: p.Name, Grants: phases.Grants{Contribute: all, Host: all, Tools: all, See: all}}}}
	o.InProcess = map[string]runtime.Plugin{p.Name: p}
	eng, err := runtime.New(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// made records what a host with a model and a state does with the plugin, for each text
// a turn, and returns the file.
func made(t *testing.T, texts ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	w, err := record.Open(path, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	eng := engine(t, urgency(""), runtime.Options{
		OnExchange: w.Write,
		Complete: func(_ context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
			asked++
			return phases.CompletionResponse{Text: "answer " + string(rune('0'+asked)) + " to " + rq.Input, Model: "m"}, nil
		},
	})
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i, text := range texts {
		turn := phases.Context{TurnID: text, SessionID: "s", Now: now.Add(time.Duration(i) * time.Minute)}
		if _, err := eng.Dispatch(t.Context(), turn, &phases.PrePromptContextInput{UserText: phases.T(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := eng.CallTool(t.Context(), "urgency", phases.ToolCall{Tool: "look", Arguments: json.RawMessage(`{"b":1,"a":2}`)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// read reads a record.
func read(t *testing.T, path string, f replay.Filter) *replay.Recording {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	all, err := replay.Read(in, f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// play plays the one part of a record on a plugin that has neither model nor state.
func play(t *testing.T, all *replay.Recording, p *sdk.Plugin) []*replay.Run {
	t.Helper()
	if len(all.Parts) != 1 {
		t.Fatalf("%d parts", len(all.Parts))
	}
	part := all.Parts[0]
	eng := engine(t, p, runtime.Options{Host: func(string) phases.Host { return part.Host }})
	var runs []*replay.Run
	if err := part.Play(t.Context(), eng, 1, func(r *replay.Run) { runs = append(runs, r) }); err != nil {
		t.Fatal(err)
	}
	return runs
}
