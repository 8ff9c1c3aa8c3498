package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/bridge"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestManySessions: many agents at once, each with a prompt, a call with a result of 1 MB, and an end of its own. What one is
// told is never another's. Eight results arrive at a time: on a machine that starves its clients, the gateway sends those
// away whose messages stand still while others wait for their memory.
func TestManySessions(t *testing.T) {
	t.Parallel()

	p := coached(t, &coach{text: "Be brief."}, nil)
	big := strings.Repeat("0123456789abcdef", 1<<16)
	large := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			host := []string{"claude-code", "codex"}[i%2]
			turn := fmt.Sprintf(`"session_id":"s%d","turn_id":"1","prompt_id":"1"`, i)
			for _, step := range []struct{ event, want string }{
				{`"hook_event_name":"UserPromptSubmit","prompt":"hi"`, "Be brief."},
				{fmt.Sprintf(`"hook_event_name":"PreToolUse","tool_name":"t%d","tool_use_id":"c","tool_input":{}`, i), ""},
				{fmt.Sprintf(`"hook_event_name":"PostToolUse","tool_name":"t%d","tool_use_id":"c","tool_input":{},"tool_response":"%s"`, i, big), fmt.Sprintf("lint t%d", i)},
				{`"hook_event_name":"Stop"`, ""},
			} {
				if len(step.event) > len(big) {
					large <- struct{}{}
				}
				status, got := p.hook(t, host, "{"+turn+","+step.event+"}")
				if len(step.event) > len(big) {
					<-large
				}
				if status != http.StatusOK || !strings.Contains(got, step.want) || step.want == "" && got != "" || strings.Count(got, "lint t") > 1 {
					t.Errorf("session %d, %.60s: status %d: %.200s", i, step.event, status, got)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkHooks is what an event of an agent costs with two hooks that judge it: over HTTP, and the engine's part of it.
// The medians are those of all events of a run.
func BenchmarkHooks(b *testing.B) {
	call := `{"session_id":"s","turn_id":"%d","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}}`
	result := `{"session_id":"s","turn_id":"%d","hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"c","tool_input":{},"tool_response":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, payload := range map[string]string{"http": call, "http, result of 1 MB": result} {
		b.Run(name, func(b *testing.B) {
			p := serve(b, Options{Tree: storetest.Tree(b, time.Now), Engine: guarded(b)}).post(b, "")
			measure50(b, func(turn int) {
				if status, text := p.hook(b, "codex", fmt.Sprintf(payload, turn)); status != http.StatusOK || text != "" {
					b.Fatalf("status %d: %s", status, text)
				}
			})
		})
	}
	b.Run("engine", func(b *testing.B) {
		br := bridge.New(guarded(b), time.Now)
		measure50(b, func(turn int) {
			e, err := agents.Decode("codex", fmt.Appendf(nil, call, turn))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := br.Handle(b.Context(), e.Place("w"), &e); err != nil {
				b.Fatal(err)
			}
		})
		if err := br.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
}

// measure50 runs f, a hundred times a turn, and reports the median of how long it took.
func measure50(b *testing.B, f func(turn int)) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		f(len(took) / 100)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

// guarded is an engine with two plugins that judge each call and see each result.
func guarded(b *testing.B) *runtime.Engine {
	b.Helper()
	var plugins []*sdk.Plugin
	for _, name := range []string{"one", "two"} {
		plugins = append(plugins, &sdk.Plugin{
			Name: name, Version: "1.0.0",
			Hooks: []sdk.Hook{
				{
					Name: "call", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"arguments"},
					ToolPreCall: func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
						return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAllow})
					},
				},
				{
					Name: "result", Kinds: []phases.Kind{phases.KindReminder}, Needs: []string{"result"},
					ToolPostCall: func(context.Context, *sdk.Call, *phases.ToolPostCallInput) ([]phases.Contribution, error) {
						return nil, nil
					},
				},
			},
		})
	}
	return looptest.Host(b, nil, plugins...)
}
