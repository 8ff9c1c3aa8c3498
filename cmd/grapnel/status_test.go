package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// statusAt is a status without anything, ten minutes after its start.
func statusAt() *statusResult {
	r := &statusResult{Target: "http://127.0.0.1:1"}
	r.StartedAt, r.UptimeSeconds = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), 600
	return r
}

// printed is what a status prints behind the gateway's own block.
func printed(r *statusResult, hooks bool) string {
	var a app
	a.printStatus(r)
	if hooks {
		a.printHooks(r)
	}
	_, rest, _ := strings.Cut(a.out.String(), "\n\n")
	return rest
}

func TestPrintStatus(t *testing.T) {
	t.Parallel()

	r := statusAt()
	row := func(name string, state phases.PluginState) runtime.PluginHealth {
		return runtime.PluginHealth{PluginRow: phases.PluginRow{Plugin: name, State: state, Generation: 2, Tier: "T1"}}
	}
	well, gone := row("well", phases.PluginReady), row("gone", phases.PluginQuarantined)
	well.StartedAt, well.MemoryBytes = r.StartedAt.Add(time.Minute), 1300<<20
	well.Took = runtime.Latency{Count: 3, P50MS: 0.123, P99MS: 12.34}
	gone.Restarts, gone.LastError = 5, &runtime.LastError{Code: "crash", At: r.StartedAt.Add(8 * time.Minute)}
	well.Requested = &phases.Grants{Contribute: []string{"decision", "rewrite"}, Tools: []string{"scale_read", "scale_set"}, See: []string{"arguments", "user_text"}}
	well.Grants = phases.Grants{Contribute: []string{"decision"}, Tools: []string{"scale_*"}}
	r.Plugins = []runtime.PluginHealth{well, gone}
	r.Issues = []gateway.Issue{
		{Kind: "quarantined", Plugin: "gone", Code: "crash", Reason: "exited with status 7 (crash)", At: r.StartedAt.Add(8 * time.Minute), InARow: 3, FailOpen: 2, Hint: "mend it"},
		{Kind: "breaker_open", Plugin: "well", Subscription: "well.guard", Phase: phases.ToolPreCall, Code: "timeout", Reason: "5 of 9 runs failed with timeout", At: r.StartedAt.Add(599 * time.Second), Hint: strings.Repeat("a b ", 45)},
		{Kind: "failing", Plugin: "well", Phase: phases.PhaseToolCall, Code: "plugin_error", Reason: "its own code is bad\x1b[2Jday", At: r.StartedAt.Add(time.Minute), InARow: 1, Hint: "ask"},
		{Kind: "busy", Plugin: "well", Code: "overloaded", Reason: "it works on 4 calls, its limit, and 1 wait", At: r.StartedAt, Hint: "raise it"},
	}
	r.Hooks = []runtime.HookRow{
		{Subscription: "well.guard", Plugin: "well", Phase: phases.ToolPreCall, Breaker: "open", RunStats: runtime.RunStats{Runs: 9, Failed: 5, LastError: &runtime.LastError{Code: "timeout", At: r.StartedAt.Add(9 * time.Minute)}}},
		{Subscription: "well.off", Plugin: "well", Phase: phases.ToolPreCall, Breaker: "closed", Off: "operator"},
		{Plugin: "well", Phase: phases.PhaseToolCall, RunStats: runtime.RunStats{Runs: 2, Took: runtime.Latency{Count: 2, P50MS: 1, P99MS: 2}}},
	}
	r.Phases = []runtime.PhaseRow{{Phase: phases.ToolPreCall, Dispatches: 9, Failed: 4, Took: runtime.Latency{Count: 9, P50MS: 100, P99MS: 101, MaxMS: 102}}}
	want := `plugins (2)
  plugin  state        gen  tier  restarts  up  p50 ms  p99 ms     memory  last error
  well    ready          2  T1           0  9m    0.12    12.3  1,300 MiB  -
  gone    quarantined    2  T1           5   -       -       -          -  crash 2m ago

asked for and not granted (1)
  well: to allow it, add to its grants contribute: [rewrite], see: [arguments, user_text]

issues (4)
  the plugin gone went into quarantine 2m ago (crash): exited with status 7; runs failed in a row:
    3; phases that went on without: 2
    hint: mend it
  the hook well.guard is not called, its breaker is open, last error 1s ago (timeout): 5 of 9 runs
    failed with timeout
    hint: a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a
    b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b
  a tool of well fails, last 9m ago (plugin_error): its own code is badday; runs failed in a row:
    1
    hint: ask
  the plugin well is busy (overloaded): it works on 4 calls, its limit, and 1 wait
    hint: raise it

tool.pre_call (2)
  hook        state  runs  cached  failed  fail-open  p50 ms  p99 ms  last error
  well.guard  open      9       0       5          0       -       -  timeout 1m ago
  well.off    off       0       0       0          0       -       -  -

tool.call (1)
  hook  state  runs  cached  failed  fail-open  p50 ms  p99 ms  last error
  well  ok        2       0       0          0    1.00    2.00  -

phases (1)
  phase          dispatches  failed  cancelled  p50 ms  p99 ms  max ms
  tool.pre_call           9       4          0     100     101     102
`
	if diff := cmp.Diff(want, printed(r, true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGatewayThatHangs: what is told is what to do, and not what a context calls it.
func TestGatewayThatHangs(t *testing.T) {
	t.Parallel()

	r := reached{target: "http://127.0.0.1:1"}
	err := r.failed(fmt.Errorf("client: status: %w", context.DeadlineExceeded))
	if code, text := codeOf(err), err.Error(); code != exitUnable || !strings.Contains(text, r.target) || !strings.Contains(text, "look at its log") || strings.Contains(text, "context") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// TestStatusIsNarrow: no line is wider than a terminal, however long names are.
func TestStatusIsNarrow(t *testing.T) {
	t.Parallel()

	r, long := statusAt(), strings.Repeat("a", 128)
	r.UptimeSeconds = 1e7
	last := &runtime.LastError{Code: string(phases.CauseBudgetExhausted), At: r.StartedAt}
	took := runtime.Latency{Count: 1, P50MS: 1e5, P99MS: 1e5}
	r.Plugins = []runtime.PluginHealth{{PluginRow: phases.PluginRow{Plugin: long, State: phases.PluginQuarantined, Restarts: 9999}, StartedAt: r.StartedAt, MemoryBytes: 1 << 40, LastError: last, Took: took}}
	r.Issues = []gateway.Issue{{Kind: "failing", Subscription: "s", Code: "c", Reason: strings.Repeat("reason ", 90), Hint: strings.Repeat("hint ", 90)}}
	r.Hooks = []runtime.HookRow{{Subscription: long, Phase: phases.PrePromptCompile, Breaker: "half_open", RunStats: runtime.RunStats{Runs: 1e6, Cached: 1e6, Failed: 1e6, FailOpen: 1e6, LastError: last, Took: took}}}
	for line := range strings.Lines(printed(r, true)) {
		if n := text.Chars(strings.TrimSuffix(line, "\n")); n > statusWidth {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}

// TestReadProof: the proof of a gateway is read, and nothing behind it; another program's answer ends.
func TestReadProof(t *testing.T) {
	t.Parallel()

	const head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
	for name, tt := range map[string]struct {
		answer string
		good   bool
	}{
		"a proof":              {head + "\r\nabc", true},
		"more behind it":       {head + "\r\nabcHTTP", false},
		"the connection's end": {head + "Connection: close\r\n\r\nabc", false},
		"another status":       {strings.Replace(head, "200", "302", 1) + "\r\nabc", false},
		"without end":          {head + "X: " + strings.Repeat("x", 1<<20), false},
	} {
		r := strings.NewReader(tt.answer)
		if got, err := readProof(r); (err == nil) != tt.good || tt.good && string(got) != "abc" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if read := len(tt.answer) - r.Len(); read > 8<<10 {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}
