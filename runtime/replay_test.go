package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// scriptedHost is a host that answers everything alike.
type scriptedHost struct{ calls atomic.Int32 }

func (s *scriptedHost) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	s.calls.Add(1)
	return json.RawMessage(`{"value":"from the record"}`), nil
}

func (*scriptedHost) Invalidate(context.Context, phases.Invalidation) error { return nil }

// TestReplay sends a recorded call again: no grant, no condition and no memory is in
// the way, the host's answers come from elsewhere, and nothing is merged.
func TestReplay(t *testing.T) {
	t.Parallel()

	say := func(ctx context.Context, c *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		answer, err := c.Host.Call(ctx, "vault", "open", nil)
		text := c.Context.TurnID + " " + c.Context.Now.Format(time.TimeOnly) + " " + string(answer)
		if policy, ok := in.(*phases.PrePolicyInput); ok {
			text += " " + policy.UserText.Value
		}
		return []phases.Contribution{&phases.PromptContext{Content: text}, &phases.Noop{}}, err
	}
	host := &scriptedHost{}
	hook := on("say", phases.PrePolicy, say, phases.KindPolicy)
	hook.When = `turn.id == "never"`
	h := newHosted(plugin("house", hook))
	h.plugin("house").Grants = phases.Grants{}
	h.opts.Host = func(string) phases.Host { return host }
	eng, log := recorded(t, h)
	x := &runtime.Exchange{Kind: runtime.ExchangeDispatch, Plugin: "house", Subscription: "house.say", Dispatch: &phases.Dispatch{
		Subscription: "house.say", Hook: "say", Phase: phases.PrePolicy, Remaining: 10 * time.Second, Generation: 7, Incarnation: 9, Attempt: 1,
		Context: phases.Context{TurnID: "1", Now: time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC)}, Input: &phases.PrePolicyInput{UserText: phases.T("hello")},
	}}
	got, err := eng.Replay(t.Context(), x)
	if err != nil || got.Err != nil {
		t.Fatalf("%v, %v", err, got.Err)
	}
	text, ok := got.Result.Contributions[0].(*phases.PromptContext)
	if !ok || text.Content != `1 12:30:00 {"value":"from the record"} hello` || len(got.Result.Contributions) != 2 {
		t.Errorf("answer %+v", got.Result.Contributions)
	}
	if x.Dispatch.Incarnation != 9 || got.Dispatch.Incarnation != 1 || got.TookMS <= 0 || host.calls.Load() != 1 {
		t.Errorf("exchange %+v, %d host calls", got, host.calls.Load())
	}
	if told := log.of(runtime.ExchangeDispatch); len(told) != 0 {
		t.Errorf("a repeated call was told: %+v", told)
	}
}

func TestReplayFailures(t *testing.T) {
	t.Parallel()

	p := plugin("house", on("deaf", phases.PrePolicy, taking(time.Hour), phases.KindNoop))
	p.Tools = []sdk.Tool{{Tool: phases.Tool{Name: "look", Description: "Looks."}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
		panic("no")
	}}}
	eng := newHosted(p).start(t)
	dispatch := func(remaining time.Duration) *runtime.Exchange {
		return &runtime.Exchange{Kind: runtime.ExchangeDispatch, Plugin: "house", Dispatch: &phases.Dispatch{
			Hook: "deaf", Subscription: "house.deaf", Phase: phases.PrePolicy, Input: &phases.PrePolicyInput{}, Remaining: remaining,
		}}
	}
	got, err := eng.Replay(t.Context(), dispatch(10*time.Millisecond))
	if err != nil || got.Err == nil || got.Err.Code != phases.CauseTimeout || got.Result != nil {
		t.Errorf("a deaf hook: %+v, %v", got, err)
	}
	got, err = eng.Replay(t.Context(), &runtime.Exchange{Kind: runtime.ExchangeTool, Plugin: "house", ToolCall: &phases.ToolCall{Tool: "look"}})
	if err != nil || got.Err == nil || got.Err.PluginCode != "panic" || got.ToolResult != nil {
		t.Errorf("a panic: %+v, %v", got, err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		ctx  context.Context
		x    *runtime.Exchange
		want string
	}{
		"another plugin": {t.Context(), &runtime.Exchange{Kind: runtime.ExchangeTool, Plugin: "hause", ToolCall: &phases.ToolCall{}}, `did you mean "house"`},
		"another kind":   {t.Context(), &runtime.Exchange{Kind: runtime.ExchangeHost, Plugin: "house"}, `of the kind "host"`},
		"nothing sent":   {t.Context(), &runtime.Exchange{Kind: runtime.ExchangeTool, Plugin: "house"}, `of the kind "tool"`},
		"a caller left":  {left, dispatch(time.Hour), "context canceled"},
	} {
		if _, err := eng.Replay(tt.ctx, tt.x); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}
