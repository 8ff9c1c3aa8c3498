package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// complete is a host's function.
type complete = func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error)

// answers is a model that always says the same.
func answers(res phases.CompletionResponse) complete {
	return func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error) { return res, nil }
}

// asking asks the model and notes what came of it.
func (j *journal) asking(rq phases.CompletionRequest) handler {
	return func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		j.add(said(sdk.Complete(ctx, c.Host, rq)))
		return nil, nil
	}
}

// said is an answer or an error in a line.
func said(res *phases.CompletionResponse, err error) string {
	if err == nil {
		return fmt.Sprintf("%s (%s, %s)", res.Text, res.Model, res.Stopped)
	}
	failure, ok := errors.AsType[*phases.Error](err)
	if !ok {
		return "no coded error: " + err.Error()
	}
	return string(failure.Code) + ": " + failure.Message
}

// hostRuns are the ledger's rows of host calls.
func hostRuns(runs []phases.Run) []phases.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r phases.Run) bool { return r.Phase != phases.PhaseHostCall })
}

// hi is a request that any model can answer.
func hi() phases.CompletionRequest { return phases.CompletionRequest{Input: "hi"} }

// TestModelGrants: a grant names the service, or the method.
func TestModelGrants(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		grants  []string
		allowed bool
		told    []string
	}{
		{"all methods", []string{"model.*"}, true, []string{"model"}},
		{"another method", []string{"model.embed"}, false, nil},
		{"one method of another service", []string{"state.get"}, false, []string{"state"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var j journal
			var told []string
			p := plugin("p", on("h", phases.PrePolicy, j.asking(hi())))
			p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
				told = c.Services
				return sdk.Setup{}, nil
			}
			h := newHosted(p)
			h.plugin("p").Grants.Host = tt.grants
			h.opts.Complete = answers(phases.CompletionResponse{Text: "hello", Model: "m"})
			dispatch(t, h.start(t), &phases.PrePolicyInput{})
			want := "hello (m, end)"
			if !tt.allowed {
				want = `forbidden: the plugin p has no grant for the host service "model", nor for "model.complete"`
			}
			checkSame(t, "it", j.all(), []string{want})
			checkSame(t, "services", told, tt.told)
		})
	}
}

// TestModelRequest: what the host's function gets, and what comes back.
func TestModelRequest(t *testing.T) {
	t.Parallel()

	rq := phases.CompletionRequest{
		System: "Be brief.", Input: "Ü\n\"x\"", Schema: raw(`{"type":"object"}`), SchemaName: "facts", MaxOutputTokens: 77, Purpose: "extract",
	}
	var got phases.CompletionRequest
	var bounded bool
	var res *phases.CompletionResponse
	h := newHosted(plugin("p", on("h", phases.PrePolicy, func(ctx context.Context, c *sdk.Call, _ phases.Input) (_ []phases.Contribution, err error) {
		res, err = sdk.Complete(ctx, c.Host, rq)
		return nil, err
	})))
	want := phases.CompletionResponse{
		Text: `{"a":1}`, Model: "small-1", Usage: phases.Usage{InputTokens: 9, OutputTokens: 4, CacheReadTokens: 2}, Stopped: phases.StoppedEnd,
	}
	h.opts.Complete = func(ctx context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
		_, bounded = ctx.Deadline()
		got = rq
		return want, nil
	}
	out := dispatch(t, h.start(t), &phases.PrePolicyInput{})
	if run := runOf(t, out, "p.h"); run.State != phases.StateSucceeded {
		t.Fatalf("the hook: %+v", run)
	}
	if diff := cmp.Diff(got, rq); diff != "" || !bounded {
		t.Errorf("the function got, with a deadline: %v (-got +sent):\n%s", bounded, diff)
	}
	if diff := cmp.Diff(*res, want); diff != "" {
		t.Errorf("the plugin got (-got +answered):\n%s", diff)
	}
}

// TestModelLedger: each call of a turn leaves a row, refused and failed ones too;
// one reason for not making a call leaves one row.
func TestModelLedger(t *testing.T) {
	t.Parallel()

	var j, events journal
	p := offering("p", tool("ask", func(ctx context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
		j.add(said(sdk.Complete(ctx, c.Host, phases.CompletionRequest{Input: "tool"})))
		return sdk.Text("ok"), nil
	}))
	p.Hooks = append(p.Hooks, on("h", phases.PrePolicy, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		for _, input := range []string{"good", "fails", "again", "again", "", "", "deep"} {
			j.add(said(sdk.Complete(ctx, c.Host, phases.CompletionRequest{Input: input})))
		}
		return nil, nil
	}))
	h := newHosted(p)
	h.plugin("p").Limits.Model.Calls = 2
	h.opts.Complete = func(_ context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
		if rq.Input == "fails" {
			return phases.CompletionResponse{}, phases.Errorf(phases.CauseOverloaded, "too many requests")
		}
		return phases.CompletionResponse{Text: "fine", Model: "m1", Usage: phases.Usage{InputTokens: 12, OutputTokens: 3}}, nil
	}
	h.opts.OnEvent = events.events(runtime.EventRun)
	eng := h.start(t)
	turn := opened(t, eng)
	outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
	if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "ask"}); err != nil {
		t.Fatal(err)
	}
	done := compiled(t, turn)

	rows := hostRuns(done.Manifest.Runs)
	if diff := cmp.Diff(rowsOf(rows), []string{
		"p.h/model.complete succeeded", "p.h/model.complete failed overloaded", "p.h/model.complete budget_exhausted budget_exhausted",
		"p.h/model.complete failed invalid_reply", "p.ask/model.complete budget_exhausted budget_exhausted",
	}); diff != "" {
		t.Errorf("ledger (-got +want):\n%s", diff)
	}
	if rows[2].Attempts != 0 || rows[2].Usage != (phases.Usage{}) || rows[4].Generation != 1 || rows[4].Incarnation != 1 {
		t.Errorf("rows of refused calls: %+v, %+v", rows[2], rows[4])
	}
	if lines := j.all(); len(lines) != 8 || lines[1] != "overloaded: too many requests" || lines[3] != lines[2] || !strings.HasPrefix(lines[4], "invalid_reply: params: ") {
		t.Errorf("the plugin saw %q", lines)
	}
	told := slices.DeleteFunc(events.all(), func(line string) bool { return line == "p succeeded" })
	checkSame(t, "events", told, []string{"p failed overloaded", "p budget_exhausted budget_exhausted", "p failed invalid_reply", "p budget_exhausted budget_exhausted"})
}

// TestModelBudgetIsOfTheTurn: a turn begins with a whole budget, and so does what
// runs outside of one.
func TestModelBudgetIsOfTheTurn(t *testing.T) {
	t.Parallel()

	var j journal
	p := plugin("p", on("h", phases.PrePolicy, j.asking(hi())), on("late", phases.PostTurn, j.asking(hi())))
	h := newHosted(p)
	h.plugin("p").Limits.Model = config.ModelBudget{Calls: 2, OutputTokens: 1500}
	var allowed []int
	var mu sync.Mutex
	h.opts.Complete = func(_ context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		allowed = append(allowed, rq.MaxOutputTokens)
		return phases.CompletionResponse{Text: "x"}, nil // says nothing of its usage: it counts as allowed
	}
	eng := h.start(t)
	for _, id := range []string{"1", "2"} {
		at := host()
		at.TurnID = id
		turn := beginAt(t, eng, at)
		for range 3 {
			outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
		}
		outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{Status: phases.TurnSucceeded}))
		waitBackground(t, eng)
	}
	dispatch(t, eng, &phases.PrePolicyInput{})
	checkSame(t, "tokens that were allowed", allowed, []int{1024, 476, 1024, 1024, 476, 1024, 1024})
	exhausted := slices.DeleteFunc(j.all(), func(line string) bool { return !strings.HasPrefix(line, "budget_exhausted: ") })
	if len(exhausted) != 2 {
		t.Errorf("%q", j.all())
	}
}

// TestModelOutsideHooks: what no hook and no tool call answers for is refused, and
// told.
func TestModelOutsideHooks(t *testing.T) {
	t.Parallel()

	var host phases.Host
	kept := make(chan context.Context, 1) // what a plugin should not do
	p := plugin("p", on("h", phases.PrePolicy, func(ctx context.Context, _ *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		kept <- ctx
		return nil, nil
	}))
	p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
		host = c.Host
		return sdk.Setup{}, nil
	}
	var events []phases.Run
	h := newHosted(p)
	h.opts.Complete = answers(phases.CompletionResponse{Text: "x"})
	h.opts.OnEvent = func(e runtime.Event) {
		if e.Kind == runtime.EventRun {
			events = append(events, *e.Run)
		}
	}
	eng := h.start(t)
	if got := said(sdk.Complete(t.Context(), host, hi())); got != "forbidden: the model can only be asked during a hook or a tool call: pass on the handler's context" {
		t.Errorf("on its own account: %s", got)
	}
	checkSame(t, "events", rowsOf(events), []string{"p/model.complete failed forbidden"})
	dispatch(t, eng, &phases.PrePolicyInput{})
	if got := said(sdk.Complete(<-kept, host, hi())); got != "cancelled: the caller does not wait any longer" {
		t.Errorf("in the name of a hook that has ended: %s", got)
	}
}

// TestModelAbsent: without a function there is no service, and with a service of
// the host's own the engine keeps out of it.
func TestModelAbsent(t *testing.T) {
	t.Parallel()

	own := map[string]runtime.Service{"model": {"complete": {Call: func(context.Context, runtime.Caller, json.RawMessage) (json.RawMessage, error) {
		return raw(`{"text":"mine"}`), nil
	}}}}
	t.Run("no model", func(t *testing.T) {
		t.Parallel()

		var j journal
		h := newHosted(plugin("p", on("h", phases.PrePolicy, j.asking(hi()))))
		turn := begin(t, h.start(t))
		outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
		checkSame(t, "it", j.all(), []string{`unavailable: this host has no service "model"`})
		rows := hostRuns(compiled(t, turn).Manifest.Runs)
		if len(rows) != 1 || rows[0].State != phases.StateUnavailable || rows[0].Code != string(phases.CauseUnavailable) {
			t.Errorf("ledger: %v", rowsOf(rows))
		}
	})
	t.Run("both", func(t *testing.T) {
		t.Parallel()

		_, err := runtime.New(t.Context(), &config.Config{Version: 1}, runtime.Options{Services: own, Complete: answers(phases.CompletionResponse{})})
		if err == nil || !strings.Contains(err.Error(), `Options.Complete and a service "model"`) {
			t.Errorf("New = %v", err)
		}
	})
}

// ExampleOptions_complete gives plugins a model: a function of the host's.
func ExampleOptions_complete() {
	p := plugin("p", on("h", phases.PrePolicy, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		res, err := sdk.Complete(ctx, c.Host, phases.CompletionRequest{Input: "Is it warm?", MaxOutputTokens: 50})
		if err != nil {
			return nil, nil //nolint:nilerr // it can do without
		}
		fmt.Println(res.Text, res.Stopped)
		return nil, nil
	}))
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "p", Grants: phases.Grants{Host: []string{"model.complete"}}}}}
	eng, err := runtime.New(context.Background(), cfg, runtime.Options{
		InProcess: map[string]runtime.Plugin{"p": p},
		Complete: func(_ context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
			return phases.CompletionResponse{Text: fmt.Sprintf("Yes (of %d tokens).", rq.MaxOutputTokens), Model: "small"}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = eng.Dispatch(context.Background(), phases.Context{}, &phases.PrePolicyInput{})
	if err := errors.Join(err, eng.Close(context.Background())); err != nil {
		fmt.Println(err)
	}
	// Output: Yes (of 50 tokens). end
}
