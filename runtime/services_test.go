package runtime_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// serve is a host service with one method, "get" or "now".
func serve(call func(ctx context.Context, caller runtime.Caller, params json.RawMessage) (json.RawMessage, error)) runtime.Service {
	return runtime.Service{"get": {Call: call}, "now": {Call: call}}
}

// calling is a hook that calls a host service and answers with what it got.
func calling(name string) handler {
	return func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		got, err := c.Host.Call(ctx, name, "get", raw(`{"k":1}`))
		if err != nil {
			return nil, err
		}
		return sdk.Reply(&phases.Reminder{Type: "got", Text: string(got)})
	}
}

// TestServices: a service is called by grant, with the context of the call that
// asks, and within its time.
func TestServices(t *testing.T) {
	t.Parallel()

	echo := serve(func(ctx context.Context, caller runtime.Caller, params json.RawMessage) (json.RawMessage, error) {
		_, bounded := ctx.Deadline()
		return json.Marshal(fmt.Sprintf("%s %s %s %v", caller.Plugin, caller.Context.TurnID, params, bounded))
	})
	tests := []struct {
		name, service string
		grant         []string
		want          string // what the hook got, or its failure
	}{
		{"granted", "state", []string{"state"}, `"p 1 {\"k\":1} true"`},
		{"no grant", "state", []string{"documents"}, "failed forbidden"},
		{"unknown service", "state2", []string{"*"}, "failed unavailable"},
		{"coded error", "coded", []string{"*"}, "failed overloaded"},
		{"panic", "panics", []string{"*"}, "failed internal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := newHosted(plugin("p", on("h", phases.PrePromptCompile, calling(tt.service), phases.KindReminder)))
			h.plugin("p").Grants.Host = tt.grant
			h.opts.Services = map[string]runtime.Service{
				"state": echo,
				"coded": serve(func(context.Context, runtime.Caller, json.RawMessage) (json.RawMessage, error) {
					return nil, phases.Errorf(phases.CauseOverloaded, "too much")
				}),
				"panics": serve(func(context.Context, runtime.Caller, json.RawMessage) (json.RawMessage, error) { panic("x") }),
			}
			out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
			run := runOf(t, out, "p.h")
			got := string(run.State) + " " + cmp.Or(run.PluginCode, run.Code)
			for _, r := range out.Merged.Reminders {
				got = r.Text
			}
			checkSame(t, "outcome", got, tt.want)
		})
	}
}

// TestNestedDispatch: what a host service dispatches for a plugin takes no second
// slot of it, inherits the time that is left, and is bounded in depth.
func TestNestedDispatch(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var depth atomic.Int32
		var left []time.Duration
		h := newHosted(plugin("p", on("h", phases.PrePromptCompile, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			time.Sleep(100 * ms)
			deadline, _ := ctx.Deadline()
			left = append(left, time.Until(deadline))
			depth.Add(1)
			if _, err := c.Host.Call(ctx, "again", "now", nil); err != nil {
				return nil, err
			}
			return nil, nil
		})))
		h.plugin("p").Limits.Concurrency = 1
		var eng *runtime.Engine
		h.opts.Services = map[string]runtime.Service{"again": serve(
			func(ctx context.Context, _ runtime.Caller, _ json.RawMessage) (json.RawMessage, error) {
				out, err := eng.Dispatch(ctx, host(), &phases.PrePromptCompileInput{})
				if err != nil {
					return nil, err
				}
				return raw(`"` + string(out.Runs[0].State) + `"`), nil
			},
		)}
		eng = h.start(t)
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		if got := runOf(t, out, "p.h").State; got != phases.StateSucceeded {
			t.Errorf("the outermost run: %s", got)
		}
		checkSame(t, "time left", left, []time.Duration{900 * ms, 800 * ms, 700 * ms, 600 * ms, 500 * ms})
		if n := depth.Load(); n != 5 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestNestedTool: a tool that is called in the course of a call of the same
// plugin takes no second slot either.
func TestNestedTool(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		p := plugin("p", on("h", phases.PrePromptCompile, calling("tool"), phases.KindReminder))
		p.Tools = []sdk.Tool{says("weather", "sunny")}
		h := newHosted(p)
		h.plugin("p").Limits.Concurrency = 1
		var eng *runtime.Engine
		h.opts.Services = map[string]runtime.Service{"tool": serve(
			func(ctx context.Context, _ runtime.Caller, _ json.RawMessage) (json.RawMessage, error) {
				res, err := eng.CallTool(ctx, "p", phases.ToolCall{Tool: "weather"})
				if err != nil {
					return nil, err
				}
				return res.Content, nil
			},
		)}
		eng = h.start(t)
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		if len(out.Merged.Reminders) != 1 || out.Merged.Reminders[0].Text != `"sunny"` {
			t.Errorf("outcome: %v", states(out))
		}
	})
}

// TestCancelledService: a service that is on its way when the caller goes is told.
func TestCancelledService(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		h := newHosted(plugin("p", on("h", phases.PrePromptCompile, calling("slow"), phases.KindReminder)))
		h.opts.Services = map[string]runtime.Service{"slow": serve(
			func(ctx context.Context, _ runtime.Caller, _ json.RawMessage) (json.RawMessage, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			},
		)}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*ms, cancel)
		out := outcome(t)(h.start(t).Dispatch(ctx, host(), &phases.PrePromptCompileInput{}))
		if err := <-ended; !errors.Is(err, context.Canceled) || runOf(t, out, "p.h").State != phases.StateCancelled {
			t.Errorf("service: %v; %v", err, states(out))
		}
	})
}
