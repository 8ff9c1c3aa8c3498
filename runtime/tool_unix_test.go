//go:build unix

package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// toolBench is a turn whose tools are those of a process.
func toolBench(t *testing.T, change func(*config.Plugin)) (*processBench, *runtime.Turn) {
	t.Helper()
	b := newBench(t)
	p := bad(t, "bad", "tools")
	if change != nil {
		change(&p)
	}
	cfg := patient(p)
	cfg.Budgets.Phases[phases.PreTools] = budget(2 * generous)
	return b, opened(t, b.startWith(t, cfg, runtime.Options{}))
}

// TestToolOfProcess: a call over the wire, hidden tools, and what each leaves in the
// ledger of the next round.
func TestToolOfProcess(t *testing.T) {
	_, turn := toolBench(t, nil)
	call := func(name string) (string, error) {
		res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: name, Arguments: raw(`{"a":1}`)})
		if err != nil {
			return "", err
		}
		return string(res.Content), nil
	}
	compiled(t, turn)
	if got, err := call("echo"); err != nil || got != `"echo {\"a\":1} of turn 1, key w/t/1/tool.call/1/bad.echo"` {
		t.Errorf("echo = %s, %v", got, err)
	}
	if _, err := call("whisper"); phases.CodeOf(err) != phases.CauseForbidden {
		t.Errorf("a hidden tool: %v", err)
	}
	if res := request(t, turn, `{"domains": ["extra"]}`); res.IsError || !strings.Contains(string(res.Content), `{"description":"is whisper","name":"whisper"}`) {
		t.Errorf("request_tools = %s", res.Content)
	}
	if got, err := call("whisper"); err != nil || !strings.HasPrefix(got, `"whisper {`) {
		t.Errorf("whisper = %s, %v", got, err)
	}
	runs := toolRuns(compiled(t, turn).Manifest)
	want := []string{"bad.echo succeeded", "bad.whisper failed forbidden", "builtin.request_tools succeeded", "bad.whisper succeeded"}
	checkSame(t, "ledger", rowsOf(runs), want)
	echo := runs[0]
	if echo.BytesIn == 0 || echo.BytesOut == 0 || echo.DurationMS == 0 || echo.Incarnation != 1 || echo.Generation != 1 || echo.PluginVersion != "1.0.0" {
		t.Errorf("the row of echo: %+v", echo)
	}
}

// TestToolOfBadProcess: what a process does in a call has its word in the ledger,
// and the next call works.
func TestToolOfBadProcess(t *testing.T) {
	if alone(t) {
		return
	}
	tests := []struct {
		tool      string
		change    func(*config.Plugin)
		arguments string
		leave     time.Duration // after which the caller goes
		want      string
		// restarts says that the process is another one afterwards.
		restarts bool
	}{
		{tool: "crash", want: "bad.crash failed crash", restarts: true},
		{tool: "big", want: "bad.big failed oversize_reply"},
		{tool: "echo", arguments: `"` + strings.Repeat("x", 4<<20) + `"`, want: "bad.echo failed oversize_request"},
		{tool: "deaf", change: func(p *config.Plugin) { p.Limits.Tool = phases.Duration(time.Second) }, want: "bad.deaf timed_out timeout"},
		{tool: "deaf", leave: 100 * time.Millisecond, want: "bad.deaf cancelled cancelled"},
		{tool: "echo", change: func(p *config.Plugin) { p.Grants.Tools = []string{"whisper"} }, want: "echo failed forbidden"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			b, turn := toolBench(t, tt.change)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.leave > 0 {
				time.AfterFunc(tt.leave, cancel)
			}
			if res, err := turn.CallTool(ctx, phases.ToolCall{Tool: tt.tool, Arguments: raw(tt.arguments)}); err == nil {
				t.Errorf("%s = %.100s", tt.tool, res.Content)
			}
			if tt.restarts {
				b.awaitState(t, "bad", phases.PluginReady, 2)
			}
			want := []string{tt.want}
			if !strings.Contains(tt.want, "forbidden") {
				want = append(want, "bad.echo succeeded")
				if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "echo"}); err != nil {
					t.Errorf("the next call: %v", err)
				}
			}
			runs := toolRuns(compiled(t, turn).Manifest)
			if diff := cmp.Diff(rowsOf(runs), want); diff != "" {
				t.Fatalf("ledger (-got +want):\n%s", diff)
			}
			if last := runs[len(runs)-1]; tt.restarts && last.Incarnation != 2 {
				t.Errorf("answered by %+v", last)
			}
		})
	}
}
