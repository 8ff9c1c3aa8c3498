package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// BenchmarkPolicyLayer is the engine without a process: plan, condition, budget,
// copies, validation, merge and ledger of one hook inside the host, on a goroutine of
// its own and on the caller's.
func BenchmarkPolicyLayer(b *testing.B) {
	for _, inline := range [][]string{nil, {"house"}} {
		b.Run(fmt.Sprintf("inline=%v", inline != nil), func(b *testing.B) {
			hook := section("text", "house_rules", strings.Repeat("0123456789abcdef", 64))
			hook.When = `turn.mode == "agent"`
			h := newHosted(plugin("house", hook))
			h.opts.Inline = inline
			benchmarkDispatch(b, h.start(b), phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent})
		})
	}
}

func benchmarkDispatch(b *testing.B, eng *runtime.Engine, turn phases.Context) {
	b.Helper()
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
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", SessionID: "s", Dir: "/w", Mode: phases.ModeAgent}
	benchmarkDispatch(b, newHosted(plugin("house", hook)).start(b), turn)
}

// BenchmarkToolCall is a call that one guard inside the host judges, by its arguments or by what is known of it.
func BenchmarkToolCall(b *testing.B) {
	for _, need := range []string{"arguments", phases.SeeFacts} {
		b.Run(need, func(b *testing.B) {
			hook := on("guard", phases.ToolPreCall, reply(), phases.KindDecision)
			hook.Needs = []string{need}
			h := newHosted(plugin("house", hook))
			h.opts.Inline = []string{"house"}
			eng, at := h.start(b), phases.Context{WorkspaceID: "w", ThreadID: "t", Dir: project(b)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := eng.Dispatch(b.Context(), at, command("git status && cat README.md | head -5")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
