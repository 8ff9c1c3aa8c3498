package telemetry_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/telemetry"
)

// without cuts the numbers that differ from run to run off lines of metrics.
func without(lines []string, names ...string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		value, labels, _ := strings.Cut(rest, " ")
		if slices.Contains(names, name) {
			value, _, _ = strings.Cut(value, "×")
		}
		out[i] = name + " " + value + " " + labels
	}
	slices.Sort(out)
	return out
}

// TestEngine has a hook or a tool for each thing that can become of one, in a real engine. One of the hooks is answered
// from the cache the second time, which is a span and a run, and no call.
func TestEngine(t *testing.T) {
	t.Parallel()
	answer := func(h sdk.Handler[*phases.PrePromptCompileInput]) sdk.Hook {
		return sdk.Hook{Kinds: []phases.Kind{phases.KindPromptSection}, PrePromptCompile: h}
	}
	named := func(name string, hook sdk.Hook, change func(*sdk.Hook)) sdk.Hook {
		hook.Name = name
		change(&hook)
		return hook
	}
	fails := answer(func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		return nil, sdk.Fail("mood", "not now")
	})
	hangs := answer(func(ctx context.Context, _ *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	same := func(*sdk.Hook) {}
	made := func(name string, result phases.ToolResult) sdk.Tool {
		return sdk.Tool{
			Tool: phases.Tool{Name: name, InputSchema: json.RawMessage(`{"type": "object"}`)},
			Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return &result, nil },
		}
	}
	tools := []sdk.Tool{made("search", phases.ToolResult{}), made("broken", phases.ToolResult{IsError: true, Content: json.RawMessage(`"no"`)})}
	plugin := &sdk.Plugin{Name: "house", Version: "1.0.0", Tools: tools, Hooks: []sdk.Hook{
		section("good", "text"),
		named("cut", section("cut", strings.Repeat("text\n", 1000)), func(h *sdk.Hook) { h.Budget = phases.TextBudget{Chars: 200} }),
		named("filtered", section("filtered", ""), func(h *sdk.Hook) { h.When = `turn.mode == "chat"` }),
		named("unsure", section("unsure", ""), func(h *sdk.Hook) { h.When = `int(turn.id) > 0` }),
		named("off", section("off", ""), same),
		named("bad", fails, same),
		named("slow", hangs, func(h *sdk.Hook) { h.Timeout = time.Millisecond }),
		named("kept", section("kept", "text"), func(h *sdk.Hook) { h.Cache = &phases.Cache{TTL: phases.Duration(time.Hour)} }),
		named("late", section("good", "other"), func(h *sdk.Hook) { h.Priority = -1 }),
	}}
	r := newRig(t, telemetry.Options{})
	other := &sdk.Plugin{Name: "other", Version: "1.0.0", Hooks: []sdk.Hook{section("good", "theirs")}}
	eng := started(t, r.Telemetry, map[string]phases.Override{"house.off": {Enabled: new(false)}}, plugin, other)
	if err := r.Watch(eng); err != nil {
		t.Fatal(err)
	}
	where := turn()
	where.TurnID = "no number"
	for range 2 {
		if _, err := eng.Dispatch(t.Context(), where, &phases.PrePromptCompileInput{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range tools {
		if _, err := eng.CallTool(t.Context(), "house", phases.ToolCall{Tool: tool.Name}); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
	}
	if _, err := eng.CallTool(t.Context(), "nobody", phases.ToolCall{Tool: "search"}); phases.CodeOf(err) != phases.CauseUnavailable {
		t.Fatalf("nobody's tool: %v", err)
	}

	names := slices.DeleteFunc(r.names(t), func(name string) bool {
		// Breakers have a test of their own.
		return name == "grapnel.breaker.state" || name == "grapnel.calls.abandoned" // whether the slow hook returns before it is left is chance
	})
	golden(t, "engine", without(r.metrics(t, names...), "grapnel.plugin.call.duration", "grapnel.plugin.queue.duration", "grapnel.dispatch.duration"))
	want := append(slices.Repeat([]string{"execute_hook turn.pre_prompt_compile"}, 2*8), // all but what is filtered or off
		"execute_tool", "execute_tool broken", "execute_tool search")
	if diff := cmp.Diff(r.spanNames(), want); diff != "" {
		t.Errorf("spans (-got +want):\n%s", diff)
	}
}

// TestAttachKeepsOthers tells who listened before, first.
func TestAttachKeepsOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{})
	var seen []int
	opts := r.Attach(runtime.Options{OnEvent: func(runtime.Event) { seen = append(seen, len(r.names(t))) }})
	opts.OnEvent(ran(unasked(phases.StateFiltered, "")))
	opts.OnEvent(ran(unasked(phases.StateFiltered, "")))
	if diff := cmp.Diff(seen, []int{0, 1}); diff != "" {
		t.Errorf("metrics when the other one was told (-got +want):\n%s", diff)
	}
	if opts.BeginRun == nil {
		t.Error("runs are not begun")
	}
}

// TestEngineTrace follows a trace from the host through a hook into the plugin, and on
// into the background.
func TestEngineTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{})
	tracer := r.tracers.Tracer("test")
	told := make(chan string, 4)
	inside := func(ctx context.Context, c *sdk.Call) {
		_, s := tracer.Start(ctx, "inside "+c.Hook)
		s.End()
		told <- c.Hook + " " + c.Trace.Parent
	}
	eng := started(t, r.Telemetry, nil, &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{
		{Name: "first", PrePolicy: func(ctx context.Context, c *sdk.Call, _ *phases.PrePolicyInput) ([]phases.Contribution, error) {
			inside(ctx, c)
			return nil, nil
		}},
		{Name: "after", Role: phases.RoleObserve, PostTurn: func(ctx context.Context, c *sdk.Call, _ *phases.PostTurnInput) ([]phases.Contribution, error) {
			inside(ctx, c)
			return nil, nil
		}},
	}, Tools: []sdk.Tool{{
		Tool: phases.Tool{Name: "search", InputSchema: json.RawMessage(`{"type": "object"}`)},
		Call: func(ctx context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			told <- c.Tool + " " + c.Trace.Parent
			return &phases.ToolResult{}, nil
		},
	}}})
	ctx, hosts := tracer.Start(t.Context(), "turn")
	if _, err := eng.Dispatch(ctx, turn(), &phases.PrePolicyInput{}); err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Dispatch(ctx, turn(), &phases.PostTurnInput{Status: phases.TurnSucceeded}); err != nil {
		t.Fatal(err)
	}
	if _, err := eng.CallTool(ctx, "house", phases.ToolCall{Tool: "search"}); err != nil {
		t.Fatal(err)
	}
	hosts.End()
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(told)
	parents := map[string]string{}
	for line := range told {
		hook, parent, _ := strings.Cut(line, " ")
		parents[hook] = parent
	}
	byID := map[string]string{hosts.SpanContext().SpanID().String(): "turn"}
	for _, s := range r.spans.GetSpans() {
		byID[s.SpanContext.SpanID().String()] = s.Name
	}
	for _, tt := range []struct{ span, below string }{
		{"execute_hook turn.pre_policy", "turn"},
		{"inside first", "execute_hook turn.pre_policy"},
		{"execute_hook turn.post_turn", "turn"},
		{"inside after", "execute_hook turn.post_turn"},
		{"execute_tool search", "turn"},
	} {
		spans := r.only(tt.span)
		if len(spans) != 1 {
			t.Errorf("%d spans %q, want 1", len(spans), tt.span)
			continue
		}
		if got := byID[spans[0].Parent.SpanID().String()]; got != tt.below || spans[0].SpanContext.TraceID() != hosts.SpanContext().TraceID() {
			t.Errorf("%q is below %q in %v, want %q in %v", tt.span, got, spans[0].SpanContext.TraceID(), tt.below, hosts.SpanContext().TraceID())
		}
	}
	for hook, span := range map[string]string{
		"first": "execute_hook turn.pre_policy", "after": "execute_hook turn.post_turn", "search": "execute_tool search",
	} {
		sc := r.only(span)[0].SpanContext
		if want := "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"; parents[hook] != want {
			t.Errorf("%s was told %q, want %q", hook, parents[hook], want)
		}
	}
}

// TestEngineBreaker has a hook that crashes until its breaker opens.
func TestEngineBreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{})
	deaf := make(chan struct{})
	t.Cleanup(func() { close(deaf) })
	hook := sdk.Hook{Name: "deaf", Timeout: time.Millisecond, PrePolicy: func(context.Context, *sdk.Call, *phases.PrePolicyInput) ([]phases.Contribution, error) {
		<-deaf
		return nil, nil
	}}
	eng := started(t, r.Telemetry, nil, &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{hook}})
	if err := r.Watch(eng); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if _, err := eng.Dispatch(t.Context(), turn(), &phases.PrePolicyInput{}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"grapnel.breaker.state 0 plugin=house state=closed subscription=house.deaf",
		"grapnel.breaker.state 0 plugin=house state=half_open subscription=house.deaf",
		"grapnel.breaker.state 1 plugin=house state=open subscription=house.deaf",
		"grapnel.calls.abandoned 5 plugin=house",
	}
	if diff := cmp.Diff(r.metrics(t, "grapnel.breaker.state", "grapnel.calls.abandoned"), want); diff != "" {
		t.Errorf("metrics (-got +want):\n%s", diff)
	}
}
