package genkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestUnknownTools: a model that calls a tool that does not exist gets an error, and the generation goes on.
func TestUnknownTools(t *testing.T) {
	t.Parallel()

	names := []string{"nobody", "coutn", "a/b/c", "../../x", "/", " ", "grapnel", "\x1b[31mred", strings.Repeat("long", 1<<16), "request_tools"}
	for _, name := range names {
		s := looptest.Start(t)
		turn := script(s.Engine, looptest.Reply{Calls: []loop.Call{
			{ID: "1", Tool: name, Arguments: json.RawMessage(`{}`)}, {ID: "2", Tool: name, Arguments: json.RawMessage(`{}`)}, {ID: "3", Tool: "count", Arguments: json.RawMessage(`{}`)},
		}}, saying("done"))
		answer, err := generate(t.Context(), turn.Turn)
		if err != nil || answer != "done" {
			t.Fatalf("%.20q: answer %q, %v", name, answer, err)
		}
		if got := turn.last(); strings.Count(turn.requests[1].Messages[2], "tool") < 2 || !strings.Contains(turn.requests[1].Messages[2], "counted {}") {
			t.Errorf("%.20q: the model was told %.300q", name, got)
		}
	}
}

// TestHidden: a tool that is hidden is offered once the model has asked for it, and can be called then.
func TestHidden(t *testing.T) {
	t.Parallel()

	add := phases.Tool{Name: "add", Description: "Adds.", HiddenDomain: "arithmetic"}
	eng := looptest.Host(t, nil, &sdk.Plugin{
		Name: "desk", Version: "1.0.0",
		Hooks: []sdk.Hook{{Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.ToolBundle{BundleID: "desk", Tools: []phases.Tool{add}})
		}}},
		Tools: []sdk.Tool{{Tool: add, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return sdk.Text("42"), nil }}},
	})
	turn := script(eng, calling("add", `{}`), calling("request_tools", `{"domains":["arithmetic"]}`), calling("add", `{}`), saying("done"))
	turn.Tools = nil
	if answer, err := generate(t.Context(), turn.Turn); err != nil || answer != "done" || turn.last() != "tool:  42" {
		t.Fatalf("answer %q, %v: the model was told %q", answer, err, turn.last())
	}
	var offered [][]string
	for _, r := range turn.requests {
		offered = append(offered, r.Tools)
	}
	if diff := cmp.Diff(offered, [][]string{{"request_tools"}, {"request_tools"}, {"add"}, {"add"}}); diff != "" || !strings.Contains(turn.requests[1].Messages[2], "is hidden") {
		t.Errorf("told %q, offered (-got +want):\n%s", turn.requests[1].Messages[2], diff)
	}
}

// TestSameNames: a tool of the host's that a plugin has, too, stays the host's; one that two plugins have is the first's.
func TestSameNames(t *testing.T) {
	t.Parallel()

	tool := phases.Tool{Name: "count", Description: "Counts.", InputSchema: json.RawMessage(`{"type":"object"}`)}
	counter := func(name string) *sdk.Plugin {
		return &sdk.Plugin{
			Name: name, Version: "1.0.0",
			Hooks: []sdk.Hook{{Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.ToolBundle{BundleID: name, Tools: []phases.Tool{tool}})
			}}},
			Tools: []sdk.Tool{{Tool: tool, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return sdk.Text("by " + name), nil }}},
		}
	}
	eng := looptest.Host(t, nil, counter("one"), counter("two"))
	for want, own := range map[string][]loop.Tool{
		"by one":      nil,
		"by the host": {{Tool: phases.Tool{Name: "count"}, Call: func(context.Context, json.RawMessage) (string, error) { return "by the host", nil }}},
	} {
		turn := script(eng, calling("count", `{}`), saying("done"))
		turn.Tools = own
		if answer, err := generate(t.Context(), turn.Turn); err != nil || answer != "done" || !strings.Contains(turn.last(), want) || len(turn.requests[0].Tools) != 1 {
			t.Errorf("answer %q, %v, tools %q; the model was told %q, want %q", answer, err, turn.requests[0].Tools, turn.last(), want)
		}
	}
}

// TestNothingGiven: a call without arguments is one with an empty object.
func TestNothingGiven(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := script(s.Engine, looptest.Reply{Calls: []loop.Call{{ID: "1", Tool: "count", Arguments: json.RawMessage(`null`)}, {ID: "2", Tool: "list", Arguments: json.RawMessage(`null`)}}}, saying("done"))
	if answer, err := generate(t.Context(), turn.Turn); err != nil || answer != "done" || !strings.Contains(turn.last(), "counted {}") || !strings.Contains(turn.last(), `{"depth":1}`) {
		t.Errorf("answer %q, %v: the model was told %q", answer, err, turn.last())
	}
}

// TestBadTools: a tool that panics or fails ends the generation, as Genkit has it, and the plugins see it; a result of
// any size comes through, cut to the host's bound.
func TestBadTools(t *testing.T) {
	t.Parallel()

	for name, call := range map[string]func() (string, error){
		"a mistake in the tool": func() (string, error) { panic("a mistake in the tool") },
		"no disk":               func() (string, error) { return "", errors.New("no disk") },
		"":                      func() (string, error) { return strings.Repeat("<huge>", 1<<16), nil },
	} {
		s := looptest.Start(t)
		turn := script(s.Engine, calling("bad", `{}`), saying("done"))
		turn.Loop.MaxResultChars = 1000
		turn.Tools = []loop.Tool{{Tool: phases.Tool{Name: "bad"}, Call: func(context.Context, json.RawMessage) (string, error) { return call() }}}
		answer, err := generate(t.Context(), turn.Turn)
		end := ended(t, s)
		switch {
		case name != "":
			if err == nil || !strings.Contains(err.Error(), name) || end.Status != phases.TurnFailed || end.ToolEvents[0].Outcome != "error" {
				t.Errorf("%s: answer %q, %v, the turn ended as %+v", name, answer, err, end)
			}
		case err != nil || answer != "done" || len(turn.requests[1].Messages[2]) > 1100 || !strings.Contains(turn.last(), "tool.output.trimmed"):
			t.Errorf("answer %q, %v, %d bytes, reminder %q", answer, err, len(turn.requests[1].Messages[2]), turn.last())
		}
	}
}

// TestPaths: plugins see which files a tool of Genkit touches.
func TestPaths(t *testing.T) {
	t.Parallel()

	var touched []string
	eng := looptest.Host(t, nil, &sdk.Plugin{Name: "watch", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"touched_paths"},
		ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			touched = append(touched, in.TouchedPaths...)
			return nil, nil
		},
	}}})
	turn := script(eng, calling("list", `{"dir":"/srv"}`), saying("done"))
	turn.Loop.Tools = []loop.Tool{{Tool: phases.Tool{Name: "list"}, Paths: func(json.RawMessage) []string { return []string{"/srv"} }}, {Tool: phases.Tool{Name: "elsewhere"}}}
	if _, err := generate(t.Context(), turn.Turn); err != nil || fmt.Sprint(touched) != "[/srv]" || strings.Contains(fmt.Sprint(turn.requests[0].Tools), "elsewhere") {
		t.Errorf("%v, paths %q, tools %q", err, touched, turn.requests[0].Tools)
	}
}
