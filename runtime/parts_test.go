package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// parts is an engine with a plugin that sets a policy by the user's words, offers a
// tool where that allows it, and notes what its tool and its background hook are told.
func parts(t *testing.T, log *journal) *runtime.Engine {
	t.Helper()
	policy := func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		said, ok := in.(*phases.PrePolicyInput)
		if !ok {
			return nil, errors.New("another input")
		}
		switch said.UserText.Value {
		case "deny":
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no", ReasonCode: "no"})
		case "fail":
			return nil, errors.New("down")
		}
		return sdk.Reply(policyOf("said", fmt.Sprintf("%q", said.UserText.Value)))
	}
	offer := func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		bundle := &phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "work"}, {Name: "more", HiddenDomain: "deep"}}}
		if said, _ := c.Policy("d", "said"); string(said) == `"nothing"` {
			bundle.Tools = nil
		}
		return sdk.Reply(bundle)
	}
	end := func(_ context.Context, c *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		said, _ := c.Policy("d", "said")
		over, ok := in.(*phases.PostTurnInput)
		if !ok {
			return nil, errors.New("another input")
		}
		log.add(fmt.Sprintf("end: %s, %s, %s, %s", over.Status, over.UserText.Text, said, c.IdempotencyKey))
		return nil, nil
	}
	work := func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
		said, _ := c.Policy("d", "said")
		log.add(fmt.Sprintf("%s: %s, %s, outside %v, key %v", c.Tool, c.Arguments, said, c.OutsideTurn, c.IdempotencyKey != ""))
		return sdk.Text("done"), nil
	}
	p := plugin("p",
		on("policy", phases.PrePolicy, policy, phases.KindPolicy, phases.KindDecision),
		on("offer", phases.PreTools, offer, phases.KindToolBundle),
		on("end", phases.PostTurn, end),
	)
	p.Hooks[0].OnFailure = word(phases.BestEffort)
	for _, name := range []string{"work", "more"} {
		p.Tools = append(p.Tools, sdk.Tool{Tool: phases.Tool{Name: name, InputSchema: raw(`{"type":"object"}`)}, Call: work})
	}
	return newHosted(p).start(t)
}

// TestCallTurnTool: a tool is called as in the turn that it belongs to: by the policy
// of the user's words, only if it is offered, and only if it is not hidden.
func TestCallTurnTool(t *testing.T) {
	t.Parallel()

	var log journal
	eng := parts(t, &log)
	tests := []struct {
		name, said, tool string
		domains          []string
		want             string
	}{
		{"offered", "hello", "work", nil, ""},
		{"hidden", "hello", "more", nil, "forbidden"},
		{"asked for", "hello", "more", []string{"deep"}, ""},
		{"not offered", "nothing", "work", nil, "forbidden"},
		{"unknown", "hello", "worc", nil, "forbidden"},
		{"denied", "deny", "work", nil, "denied"},
	}
	for _, tt := range tests {
		in := runtime.CompileInput{UserText: tt.said, ToolCalling: true}
		in.Prompt.RequestedDomains = tt.domains
		res, err := eng.CallTurnTool(t.Context(), host(), in, phases.ToolCall{Tool: tt.tool, Arguments: raw(`{"a":1}`)})
		if code := string(phases.CodeOf(err)); err != nil && code != tt.want || err == nil && tt.want != "" {
			t.Errorf("%s: error %v, want the code %q", tt.name, err, tt.want)
		}
		if err == nil && string(res.Content) != `"done"` {
			t.Errorf("%s: answer %s", tt.name, res.Content)
		}
	}
	want := []string{`work: {"a":1}, "hello", outside false, key true`, `more: {"a":1}, "hello", outside false, key true`}
	if diff := cmp.Diff(log.all(), want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

// TestFinishTurn: background hooks go by the policy of the user's words, also where
// the host sends no text twice; a turn that was denied, or has no policy, ends too.
func TestFinishTurn(t *testing.T) {
	t.Parallel()

	var log journal
	eng := parts(t, &log)
	for _, said := range []string{"hello", "hello", "deny", "fail"} {
		out, err := eng.FinishTurn(t.Context(), host(), runtime.CompileInput{UserText: said}, phases.PostTurnInput{Status: phases.TurnSucceeded})
		if err != nil || out == nil || out.Phase != phases.PostTurn {
			t.Fatalf("%s: %+v, %v", said, out, err)
		}
		if failed := len(out.Diagnostics) > 0; failed != (said == "fail") {
			t.Errorf("%s: diagnostics %v", said, out.Diagnostics)
		}
		if err := eng.WaitBackground(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	key := "w/t/1/turn.post_turn/1/p.end"
	want := []string{"end: succeeded, hello, \"hello\", " + key}
	if diff := cmp.Diff(log.all()[:1], want); diff != "" {
		t.Errorf("ends (-got +want):\n%s", diff)
	}
	if n := len(log.all()); n != 1 {
		t.Errorf("one turn was finished %d times: %v", n, log.all())
	}
}

// TestPartsOfClosedEngine: nothing begins any more.
func TestPartsOfClosedEngine(t *testing.T) {
	t.Parallel()

	eng := parts(t, &journal{})
	closeEngine(t, eng)
	if _, err := eng.CallTurnTool(t.Context(), host(), runtime.CompileInput{}, phases.ToolCall{Tool: "work"}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("CallTurnTool: %v", err)
	}
	if _, err := eng.FinishTurn(t.Context(), host(), runtime.CompileInput{}, phases.PostTurnInput{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("FinishTurn: %v", err)
	}
}
