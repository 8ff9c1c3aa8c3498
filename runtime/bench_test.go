package runtime_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// BenchmarkPolicyLayer is the engine without a process: plan, condition, budget,
// copies, validation, merge and ledger of one hook inside the host.
func BenchmarkPolicyLayer(b *testing.B) {
	hook := section("text", "house_rules", strings.Repeat("0123456789abcdef", 64))
	hook.When = `turn.mode == "agent"`
	eng := newHosted(plugin("house", hook)).start(b)
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
	b.ReportAllocs()
	for b.Loop() {
		out, err := eng.Dispatch(b.Context(), turn, &phases.PrePromptCompileInput{})
		if err != nil || len(out.Merged.Sections) != 1 {
			b.Fatalf("%v %+v", err, out)
		}
	}
}

// BenchmarkFromMemory is the same with the answer from memory, of a text that is
// long enough to show whether it is worked on again.
func BenchmarkFromMemory(b *testing.B) {
	hook := section("text", "house_rules", strings.Repeat("0123456789abcdef", 1000))
	hook.Cache = &phases.Cache{Vary: []string{"session_id", "epoch", "dir"}}
	eng := newHosted(plugin("house", hook)).start(b)
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", SessionID: "s", Dir: "/w", Mode: phases.ModeAgent}
	b.ReportAllocs()
	for b.Loop() {
		out, err := eng.Dispatch(b.Context(), turn, &phases.PrePromptCompileInput{})
		if err != nil || len(out.Merged.Sections) != 1 {
			b.Fatalf("%v %+v", err, out)
		}
	}
}
