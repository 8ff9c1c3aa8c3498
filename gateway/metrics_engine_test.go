package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// full is an overview in which everything has occurred.
func full() runtime.Overview {
	p := plug("house", phases.PluginDegraded, "session_reset")
	p.Recycled = 6
	p.Restarts, p.MemoryBytes, p.Working, p.Waiting, p.Abandoned, p.AbandonedTotal, p.LogLinesDropped, p.AnswersDropped = 2, 12345, 4, 1, 3, 7, 99, 5
	p.Truncations = map[phases.Limit]uint64{phases.LimitTotal: 3, phases.LimitSection: 1}
	p.Jobs = map[string]uint64{"done": 8, "discarded": 1}
	p.Replies = runtime.Sizes{Count: 3, Bytes: 700, Within: []uint64{1, 2, 3, 3, 3, 3, 3, 3, 3, 3}}
	h := hooked("house.rules", phases.CauseTimeout, 1)
	h.Breaker = "open"
	h.States = map[phases.RunState]uint64{phases.StateSucceeded: 5, phases.StateTimedOut: 5}
	h.Failures[phases.CauseConflict], h.Failures[phases.CauseCondition] = 2, 1
	tools := runtime.HookRow{Plugin: "house", Phase: phases.PhaseToolCall, RunStats: runtime.RunStats{States: map[phases.RunState]uint64{phases.StateSucceeded: 2}}}
	return runtime.Overview{
		Plugins: []runtime.PluginHealth{p, plug("memory", phases.PluginReady, "")}, Hooks: []runtime.HookRow{h, tools},
		Phases:  []runtime.PhaseRow{{Phase: phases.PrePromptCompile, Dispatches: 10, Failed: 2, Cancelled: 1}},
		Reloads: 4, ReloadsRefused: 1,
	}
}

// TestEngineMetrics: the exposition of everything stands in a file.
func TestEngineMetrics(t *testing.T) {
	t.Parallel()

	_, body := serve(t, Options{Engine: &fakeEngine{overview: full()}}).get(t, "/metrics", "")
	_, body, _ = strings.Cut(body, "# HELP grapnel_")
	body, _, _ = strings.Cut("# HELP grapnel_"+body, "# HELP process_")
	if diff := cmp.Diff(body, string(must(os.ReadFile("testdata/metrics.txt"))(t))); diff != "" {
		t.Errorf("metrics (-got +want):\n%s", diff)
	}
}

// TestMetricsOfEngine reads histograms of a real engine, and has Prometheus' own linter
// look at everything.
func TestMetricsOfEngine(t *testing.T) {
	t.Parallel()

	s := serve(t, Options{Tree: treeOf(t, "w"), Engine: engine(t, storetest.Tree(t, nil), nil)})
	if got, bad := s.post(t, "").call(t, "turn/compile", object{"turn": turnOf(nil)}); bad != nil {
		t.Fatalf("%v %+v", got, bad)
	}
	status, body := s.get(t, "/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for _, want := range []string{
		`grapnel_hook_seconds_bucket{phase="turn.pre_prompt_compile",plugin="house",subscription="house.rules",le="+Inf"} 1`,
		`grapnel_hook_seconds_bucket{phase="turn.pre_prompt_compile",plugin="house",subscription="house.rules",le="16.777216"} 1`,
		`grapnel_hook_seconds_count{phase="turn.pre_policy",plugin="house",subscription="house.guard"} 1`,
		`grapnel_dispatch_seconds_count{phase="turn.pre_prompt_compile"} 1`,
		`grapnel_breaker_state{phase="turn.pre_policy",plugin="house",state="closed",subscription="house.guard"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	problems, err := promlint.New(bytes.NewReader([]byte(body))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "grapnel_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestMetricsAreBounded: however a model calls its tools, and whatever the plugin that
// answers says of its failures, there are no series of it.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()

	p := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return nil, sdk.Fail(fmt.Sprintf("code_%d", time.Now().UnixNano()), "a secret")
		},
	}}}
	eng := looptest.Host(t, nil, p)
	s := serve(t, Options{Engine: eng})
	series := func() int {
		_, body := s.get(t, "/metrics", "")
		if strings.Contains(body, "code_") || strings.Contains(body, "secret") {
			t.Errorf("words of the plugin are there:\n%s", body)
		}
		n := 0
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "grapnel_") && !strings.HasPrefix(line, "grapnel_gateway_") {
				n++
			}
		}
		return n
	}
	round := func(i int) {
		_, _ = eng.Dispatch(t.Context(), phases.Context{}, &phases.PrePromptCompileInput{})                                     // its hook fails
		_, _ = eng.CallTool(t.Context(), "house", phases.ToolCall{Tool: fmt.Sprintf("made_up_%d", i), Arguments: []byte(`{}`)}) // there is none
		_, _ = eng.CallTool(t.Context(), fmt.Sprintf("nobody_%d", i), phases.ToolCall{Tool: "x", Arguments: []byte(`{}`)})      // nor that
		_, _ = s.post(t, "").call(t, fmt.Sprintf("no/such_%d", i), nil)                                                         // nor that
	}
	round(0)
	before := series()
	const rounds = 50
	for i := range rounds {
		round(i)
	}
	// Words of a closed list may come up late: on a busy machine a call waits, or is late.
	if after := series(); after-before >= rounds || before == 0 {
		t.Errorf("%d series became %d", before, after)
	}
}

// TestQueueMetrics: without a database there are no metrics of the queue.
func TestQueueMetrics(t *testing.T) {
	t.Parallel()

	_, body := serve(t, Options{Engine: &fakeEngine{queueErr: "the database is away"}}).get(t, "/metrics", "")
	if strings.Contains(body, "grapnel_queue_") || !strings.Contains(body, "grapnel_model_hanging") {
		t.Errorf("without a database:\n%s", body)
	}
}
