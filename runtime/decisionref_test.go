package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// refusing decides about messages and calls as these say: "allow", "deny" and "fail" closed; else nothing.
func refusing() *sdk.Plugin {
	decide := func(word string) ([]phases.Contribution, error) {
		switch word {
		case "allow":
			return sdk.Reply(allow())
		case "deny":
			return sdk.Reply(deny("no"))
		case "fail":
			return nil, errors.New("broken")
		}
		return nil, nil
	}
	message := on("message", phases.PrePolicy, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		policy, _ := in.(*phases.PrePolicyInput)
		return decide(policy.UserText.Value)
	}, phases.KindDecision)
	call := on("call", phases.ToolPreCall, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		tool, _ := in.(*phases.ToolPreCallInput)
		return decide(tool.Tool)
	}, phases.KindDecision)
	message.OnFailure, call.OnFailure = word(phases.FailClosed), word(phases.FailClosed)
	return plugin("p", message, call)
}

// TestDecisionRef: a decision refers to the prompt that its agent compiled last, else to the thread's last one. Runs have it
// for traces alone: it is in no record.
func TestDecisionRef(t *testing.T) {
	t.Parallel()

	h := newHosted(refusing())
	where, eng := host(), h.start(t)
	id := func(ref *phases.DecisionRef) string {
		switch {
		case ref == nil:
			return "none"
		case ref.String() != ref.ManifestID+"/0":
			t.Errorf("%s: without a store there are no numbers", ref)
		}
		return ref.ManifestID
	}
	of := func(turn *runtime.Turn, tool string) string {
		t.Helper()
		out, err := turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: tool})
		if out == nil {
			t.Fatal(err)
		}
		if run := runOf(t, out, "p.call"); run.Verdict != "" && id(run.DecisionRef) != id(out.DecisionRef) {
			t.Errorf("the run refers to %s, the outcome to %s", id(run.DecisionRef), id(out.DecisionRef))
		}
		if out.Error != nil && id(out.Error.DecisionRef) != id(out.DecisionRef) {
			t.Errorf("the error refers to %s, the outcome to %s", id(out.Error.DecisionRef), id(out.DecisionRef))
		}
		return id(out.DecisionRef)
	}
	compiled := func(turn *runtime.Turn) string {
		t.Helper()
		return prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{UserText: "allow"})).Manifest.ManifestID
	}

	turn := beginAt(t, eng, where)
	checkSame(t, "before the first prompt", of(turn, "deny"), "none")
	first := compiled(turn)
	for _, tool := range []string{"deny", "allow", "fail"} {
		checkSame(t, tool, of(turn, tool), first)
		checkSame(t, tool+" of a call", of(turn.In("/").ForCall("1"), tool), first)
	}
	checkSame(t, "no decision", of(turn, "other"), "none")
	second := compiled(turn)
	checkSame(t, "after another prompt", of(turn, "deny"), second)
	agent, err := turn.ForAgent("a")
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "an agent without a prompt", of(agent, "deny"), second)
	other := compiled(agent)
	checkSame(t, "an agent", of(agent, "deny"), other)
	checkSame(t, "the first agent", of(turn, "deny"), second)

	for _, text := range []string{"deny", "fail"} {
		done, err := eng.CompileTurn(t.Context(), where, runtime.CompileInput{UserText: text})
		if err == nil || id(done.Error.DecisionRef) != other {
			t.Errorf("a message refers to %s, not to the thread's last prompt: %v", id(done.Error.DecisionRef), err)
		}
		if b, err := json.Marshal(done.Manifest); err != nil || strings.Contains(string(b), other) {
			t.Errorf("the reference is in the record: %s", b)
		}
	}
	made := beginAt(t, eng, phases.Context{ThreadID: "another"})
	made.Under(&phases.DecisionRef{ManifestID: first})
	checkSame(t, "a call for an agent", of(made, "deny"), first)
	checkSame(t, "its own prompt", of(made, "deny") != compiled(made), true)
}
