package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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

func TestEngineMetrics(t *testing.T) {
	t.Parallel()

	_, body := serve(t, Options{Engine: &fakeEngine{overview: full()}}).get(t, "/metrics", "")
	for _, want := range []string{
		`grapnel_plugin_up{plugin="house"} 1`,
		`grapnel_plugin_state{plugin="house",state="degraded"} 1`,
		`grapnel_plugin_restarts_total{plugin="house"} 2`,
		`grapnel_plugin_recycled_total{plugin="house"} 6`,
		`grapnel_plugin_memory_bytes{plugin="house"} 12345`,
		`grapnel_plugin_calls{plugin="house",state="working"} 4`,
		`grapnel_plugin_calls{plugin="house",state="waiting"} 1`,
		`grapnel_plugin_calls_abandoned{plugin="house"} 3`,
		`grapnel_plugin_calls_abandoned_total{plugin="house"} 7`,
		`grapnel_plugin_log_lines_dropped_total{plugin="house"} 99`,
		`grapnel_plugin_answers_dropped_total{plugin="house"} 5`,
		`grapnel_truncations_total{limit="total",plugin="house"} 3`,
		`grapnel_jobs_total{plugin="house",state="discarded"} 1`,
		`grapnel_plugin_reply_bytes_bucket{plugin="house",le="256"} 2`,
		`grapnel_plugin_reply_bytes_sum{plugin="house"} 700`,
		`grapnel_hook_runs_total{phase="turn.pre_prompt_compile",plugin="house",state="timed_out",subscription="house.rules"} 5`,
		`grapnel_hook_runs_total{phase="tool.call",plugin="house",state="succeeded",subscription=""} 2`,
		`grapnel_hook_failures_total{code="conflict",phase="turn.pre_prompt_compile",plugin="house",subscription="house.rules"} 2`,
		`grapnel_hook_failures_total{code="condition",phase="turn.pre_prompt_compile",plugin="house",subscription="house.rules"} 1`,
		`grapnel_fail_open_total{phase="turn.pre_prompt_compile",plugin="house",subscription="house.rules"} 2`,
		`grapnel_breaker_state{phase="turn.pre_prompt_compile",plugin="house",state="open",subscription="house.rules"} 1`,
		`grapnel_dispatches_total{outcome="succeeded",phase="turn.pre_prompt_compile"} 7`,
		`grapnel_dispatches_total{outcome="cancelled",phase="turn.pre_prompt_compile"} 1`,
		`grapnel_reloads_total{outcome="in_force"} 4`,
		`grapnel_reloads_total{outcome="refused"} 1`,
		`grapnel_model_hanging 0`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	for _, none := range []string{`grapnel_plugin_memory_bytes{plugin="memory"}`, `grapnel_fail_open_total{phase="tool.call"`, "message of", "detail of"} {
		if strings.Contains(body, none) {
			t.Errorf("there is %s", none)
		}
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

// TestQueueMetrics: the queue's metrics are there, unless the database is down: then
// there are none, and status says why.
func TestQueueMetrics(t *testing.T) {
	t.Parallel()

	want := []string{
		`grapnel_queue_jobs{state="waiting"} 3`, `grapnel_queue_jobs{state="scheduled"} 2`, `grapnel_queue_jobs{state="running"} 4`,
		`grapnel_queue_jobs{state="dead"} 1`, `grapnel_queue_oldest_seconds 1.5`,
	}
	_, body := serve(t, Options{Engine: &fakeEngine{}}).get(t, "/metrics", "")
	for _, line := range want {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	_, body = serve(t, Options{Engine: &fakeEngine{queueErr: "the database is away"}}).get(t, "/metrics", "")
	if strings.Contains(body, "grapnel_queue_") || !strings.Contains(body, "grapnel_model_hanging") {
		t.Errorf("without a database:\n%s", body)
	}
}
