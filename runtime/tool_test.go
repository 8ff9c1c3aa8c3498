package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestToolLedger: each call of a turn leaves a row, whatever became of it, and
// an event; a call outside a turn leaves the event.
func TestToolLedger(t *testing.T) {
	t.Parallel()

	var j journal
	own := []phases.Diagnostic{{Code: "slow_disk", Message: "took a correct horse", Plugin: "another", Subscription: "an.other", Severity: "bad", SafeForUser: true}}
	p := offering("p", says("good", "fine"),
		gives("tells", &phases.ToolResult{Content: raw(`"no such file"`), IsError: true}, nil),
		gives("fails", nil, sdk.Fail("upstream_down", "no answer")),
		tool("panics", func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { panic("oh") }),
		gives("nothing", nil, nil),
		gives("deep", &phases.ToolResult{Content: raw(strings.Repeat("[", 40) + strings.Repeat("]", 40))}, nil),
		gives("remarks", &phases.ToolResult{Content: raw("1"), Diagnostics: own}, nil))
	h := newHosted(p)
	h.plugin("p").Env = config.Env{Set: map[string]config.Secret{"A": {Value: "correct horse", FromEnv: "LONG"}}}
	h.opts.OnEvent = j.events(runtime.EventRun)
	eng := h.start(t)
	turn := opened(t, eng)
	for _, name := range []string{"good", "tells", "fails", "panics", "nothing", "deep", "remarks", "made\x00up"} {
		res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: name, Arguments: raw(`{}`)})
		if (res == nil) == (err == nil) {
			t.Errorf("%q = %v, %v", name, res, err)
		}
	}
	done := compiled(t, turn)
	runs := toolRuns(done.Manifest)
	want := []string{
		"p.good succeeded", "p.tells succeeded tool_error", "p.fails failed plugin_error", "p.panics failed plugin_error", "p.nothing succeeded",
		"p.deep failed invalid_reply", "p.remarks succeeded", "made\ufffdup failed forbidden",
	}
	checkSame(t, "ledger", rowsOf(runs), want)
	row := phases.Run{
		Subscription: "p.fails", Hook: "fails", Plugin: "p", PluginVersion: "1.0.0", Generation: 1, Incarnation: 1, Phase: phases.PhaseToolCall,
		Stage: phases.StageTool, State: phases.StateFailed, Code: "plugin_error", PluginCode: "upstream_down", Attempts: 1,
		Contributions: []string{}, Cut: []phases.Cut{},
	}
	checkSame(t, "a row", runs[2], row, cmpopts.IgnoreFields(phases.Run{}, "DurationMS", "QueueMS"))
	checkSame(t, "events", j.all()[1:], []string{
		"p succeeded", "p succeeded tool_error", "p failed plugin_error", "p failed plugin_error", "p succeeded", "p failed invalid_reply", "p succeeded", "failed forbidden",
	})
	if !slices.Contains(done.Manifest.Diagnostics, manifest.Diagnostic{Code: "slow_disk", Severity: "info", Message: "took a ***", HookSource: "p.remarks"}) || own[0].Plugin != "another" {
		t.Errorf("the tool's remark is not there: %+v, or the plugin's own became %+v", done.Manifest.Diagnostics, own)
	}

	if _, err := eng.CallTool(t.Context(), "p", phases.ToolCall{Tool: "good"}); err != nil {
		t.Fatal(err)
	}
	if n := len(toolRuns(compiled(t, turn).Manifest)); n != len(want) {
		t.Errorf("%d rows after a call outside the turn, want %d", n, len(want))
	}
	if events := j.all(); events[len(events)-1] != "p succeeded" || len(events) != len(want)+2 {
		t.Errorf("events = %v", events)
	}
}

// TestToolTime: a call takes no longer than the plugin's limit and its caller allow,
// and the ledger tells a call that was given up from one that took too long.
func TestToolTime(t *testing.T) {
	t.Parallel()

	const timedOut = "p.slow timed_out timeout"
	tests := []struct {
		name            string
		limit           time.Duration
		deadline, leave time.Duration // when the caller has no more time, and when it gives up
		took            time.Duration
		told            time.Duration // the time that the tool is told
		row             string
		message         string
	}{
		{"the default", 0, 0, 0, time.Minute, time.Minute, timedOut, "has not answered within 1m0s (limits.tool)"},
		{"longer than the default", 90 * time.Second, 0, 0, 90 * time.Second, 90 * time.Second, timedOut, "within 1m30s (limits.tool)"},
		{"the caller's deadline", 2 * time.Second, 300 * ms, 0, 300 * ms, 300 * ms, timedOut, "before its caller's deadline"},
		{"a caller with more time", 2 * time.Second, time.Hour, 0, 2 * time.Second, 2 * time.Second, timedOut, "within 2s (limits.tool)"},
		{"the caller gives up", 0, 0, 100 * ms, 100 * ms, time.Minute, "p.slow cancelled cancelled", "does not wait any longer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				var told time.Duration
				h := newHosted(offering("p", tool("slow", func(ctx context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
					told = c.Remaining
					<-ctx.Done()
					return nil, ctx.Err()
				})))
				h.plugin("p").Limits.Tool = phases.Duration(tt.limit)
				turn := opened(t, h.start(t))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				if tt.leave > 0 {
					time.AfterFunc(tt.leave, cancel)
				}
				start := time.Now()
				_, err := turn.CallTool(ctx, phases.ToolCall{Tool: "slow"})
				if took := time.Since(start); took != tt.took || err == nil || !strings.Contains(err.Error(), tt.message) {
					t.Errorf("after %v: %v", took, err)
				}
				synctest.Wait()
				if told != tt.told {
					t.Errorf("it was told %v", told)
				}
				runs := toolRuns(compiled(t, turn).Manifest)
				if diff := cmp.Diff(rowsOf(runs), []string{tt.row}); diff != "" || runs[0].DurationMS != float64(tt.took.Milliseconds()) {
					t.Errorf("after %v ms, ledger (-got +want):\n%s", runs[0].DurationMS, diff)
				}
			})
		})
	}
}

// TestToolSlots: a call waits for a slot on its own time, and says so.
func TestToolSlots(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := newHosted(offering("p", tool("slow", func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			time.Sleep(time.Second)
			return sdk.Text("done"), nil
		})))
		h.plugin("p").Limits.Concurrency = 1
		h.plugin("p").Limits.Tool = phases.Duration(1500 * ms)
		turn := opened(t, h.start(t))
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "slow"}); err != nil && phases.CodeOf(err) != phases.CauseTimeout {
					t.Errorf("a call: %v", err)
				}
			})
		}
		calls.Wait()
		time.Sleep(time.Second) // the one that was left ends
		runs := toolRuns(compiled(t, turn).Manifest)
		checkSame(t, "ledger", rowsOf(runs), []string{"p.slow succeeded", "p.slow timed_out timeout"})
		if runs[1].QueueMS != 1000 || runs[1].DurationMS != 500 {
			t.Errorf("waited %v ms, then ran %v ms", runs[1].QueueMS, runs[1].DurationMS)
		}
	})
}

// TestToolSizes: what is larger than a frame is refused, in process as over the
// wire, and nothing is cut.
func TestToolSizes(t *testing.T) {
	t.Parallel()

	h := newHosted(offering("p", tool("echo", func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
		return &phases.ToolResult{Content: raw(`"` + strings.Repeat("x", 2*len(c.Arguments)) + `"`)}, nil
	})))
	h.plugin("p").Limits.Frame = 1 << 10
	turn := opened(t, h.start(t))
	for n, want := range map[int]phases.Cause{100: "", 600: phases.CauseOversizeReply, 1100: phases.CauseOversizeRequest} {
		res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "echo", Arguments: raw(`"` + strings.Repeat("a", n-2) + `"`)})
		if phases.CodeOf(err) != want {
			t.Errorf("%d bytes: %v", n, err)
		}
		if err == nil && len(res.Content) != 2*n+2 {
			t.Errorf("%d bytes: the answer has %d", n, len(res.Content))
		}
	}
}

// TestToolIsToldWhatIsGranted: the turn's context, its metadata by grant only, and
// a key that a repeated turn gives again.
func TestToolIsToldWhatIsGranted(t *testing.T) {
	t.Parallel()

	for _, see := range []string{"metadata", "arguments"} {
		t.Run(see, func(t *testing.T) {
			t.Parallel()

			var seen []*phases.ToolCall
			h := newHosted(offering("p", tool("look", func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
				seen = append(seen, c.ToolCall)
				return nil, nil
			})))
			h.plugin("p").Grants.See = []string{see}
			at := host()
			at.Metadata = map[string]json.RawMessage{"branch": raw(`"main"`)}
			turn := beginAt(t, h.start(t), at)
			outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{}))
			for _, key := range []string{"", "", "own"} {
				if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "look", IdempotencyKey: key}); err != nil {
					t.Fatal(err)
				}
			}
			var keys []string
			for _, c := range seen {
				keys = append(keys, c.IdempotencyKey)
				if c.Context.TurnID != "1" || c.Budget.MaxBytes == 0 || (c.Context.Metadata != nil) != (see == "metadata") {
					t.Errorf("told %+v", c)
				}
			}
			checkSame(t, "keys", keys, []string{"w/t/1/tool.call/1/p.look", "w/t/1/tool.call/2/p.look", "w/t/1/call/own"})
			if len(turn.Context().Metadata) != 1 {
				t.Error("the turn has lost its metadata")
			}
		})
	}
}

// TestToolsGone: what the plugin does not bring any more cannot be called any more.
func TestToolsGone(t *testing.T) {
	t.Parallel()

	names := make(chan string, 2)
	p := offering("p", says("one", "1"), says("two", "2"))
	p.Hooks = []sdk.Hook{on("tools", phases.PreTools, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
		return sdk.Reply(bundle(<-names))
	}, phases.KindToolBundle)}
	turn := begin(t, newHosted(p).start(t))
	for _, name := range []string{"one", "two"} {
		names <- name
		outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{}))
		if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "one"})
	if phases.CodeOf(err) != phases.CauseForbidden || !strings.Contains(err.Error(), `no plugin has brought a tool "one" into this turn`) {
		t.Errorf("a tool that is gone: %v", err)
	}
}

// counting is a plugin that notes each call of a tool before the sdk sees it.
type counting struct {
	*sdk.Plugin
	calls *journal
}

func (c counting) CallTool(ctx context.Context, call *phases.ToolCall) (*phases.ToolResult, error) {
	c.calls.add(call.Tool)
	return c.Plugin.CallTool(ctx, call)
}

// TestToolOfNobody: a call whose caller has gone already is not made.
func TestToolOfNobody(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var j journal
		h := newHosted(offering("p", says("x", "")))
		h.opts.InProcess["p"] = counting{offering("p", says("x", "")), &j}
		turn := opened(t, h.start(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := turn.CallTool(ctx, phases.ToolCall{Tool: "x"}); phases.CodeOf(err) != phases.CauseCancelled {
			t.Errorf("a call of nobody: %v", err)
		}
		synctest.Wait()
		if called := j.all(); len(called) > 0 {
			t.Error("it was called")
		}
	})
}

// TestToolPolicies: a call in a turn, and a job that the turn asked for, have the turn's policies by grant; one that the
// host makes by itself has none and says that there is no turn. What the caller claims does not count.
func TestToolPolicies(t *testing.T) {
	t.Parallel()

	for see, want := range map[string]string{"policy": `1 d/k={"a":1} by p.rule`, "metadata": "0 "} {
		t.Run(see, func(t *testing.T) {
			t.Parallel()

			var seen []string
			p := offering("p", tool("look", func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
				policies := ""
				for i, p := range c.Policies {
					policies = fmt.Sprintf("%s/%s=%s by %s", p.Domain, p.Key, p.Value, p.Owner)
					c.Policies[i].Value[0] = 'X' // it has copies: nobody else sees this
				}
				seen = append(seen, fmt.Sprintf("outside: %t, %d %s", c.OutsideTurn, len(c.Policies), policies))
				return sdk.Text("ok"), nil
			}))
			p.Hooks = append(p.Hooks, on("rule", phases.PrePolicy, reply(policyOf("k", `{"a":1}`), &phases.BackgroundJob{JobKind: "look"}), phases.KindPolicy, phases.KindBackgroundJob))
			h := newHosted(p)
			h.plugin("p").Grants.See = []string{see}
			eng := h.start(t)
			turn := begin(t, eng)
			outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
			waitBackground(t, eng)
			outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{}))
			call := phases.ToolCall{Tool: "look", Policies: []phases.PolicyEntry{{Domain: "d", Key: "claimed", Value: raw(`1`)}}}
			inTurn := call
			inTurn.OutsideTurn = true
			for range 2 {
				if _, err := turn.CallTool(t.Context(), inTurn); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := eng.CallTool(t.Context(), "p", call); err != nil {
				t.Fatal(err)
			}
			checkSame(t, "told", seen, append(slices.Repeat([]string{"outside: false, " + want}, 3), "outside: true, 0 ")) // the job first
		})
	}
}
