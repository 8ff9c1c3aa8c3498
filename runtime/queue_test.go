package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// byHand is a queue whose jobs the test works off itself.
type byHand struct {
	jobs chan jobs.Job
	work chan func(context.Context, jobs.Attempt) jobs.Result
}

var _ jobs.Queue = (*byHand)(nil)

func newByHand() *byHand {
	return &byHand{
		jobs: make(chan jobs.Job, 16),
		work: make(chan func(context.Context, jobs.Attempt) jobs.Result, 1),
	}
}

func (q *byHand) Add(_ context.Context, j jobs.Job) error {
	q.jobs <- j
	return nil
}

func (q *byHand) Serve(ctx context.Context, work func(context.Context, jobs.Attempt) jobs.Result) error {
	q.work <- work
	<-ctx.Done()
	return context.Cause(ctx)
}

func (q *byHand) Idle(context.Context) error { return nil }

// job is a background_job of the host's kind "k".
func job(key string) *phases.BackgroundJob {
	return &phases.BackgroundJob{JobKind: "k", IdempotencyKey: key, Payload: raw(`{}`)}
}

// asking is a hook that asks for jobs.
func asking(jobs ...phases.Contribution) sdk.Hook {
	return on("ask", phases.PrePolicy, reply(jobs...), phases.KindBackgroundJob)
}

// TestInterruptedJob: what the end of the engine has interrupted is not done; who may
// not be called twice has perhaps done it.
func TestInterruptedJob(t *testing.T) {
	t.Parallel()

	for idempotent, want := range map[bool][]string{true: {"p requeued internal", "p lost internal"}, false: {"p discarded interrupted"}} {
		synctest.Test(t, func(t *testing.T) {
			var log journal
			hook := on("end", phases.PostTurn, taking(10*time.Second))
			hook.Idempotent = idempotent
			h := newHosted(plugin("p", hook))
			h.opts.OnEvent = log.events(runtime.EventJob)
			eng := h.start(t)
			dispatch(t, eng, &phases.PostTurnInput{Status: phases.TurnSucceeded})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := eng.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close = %v", err)
			}
			checkSame(t, "events", log.all(), want)
		})
	}
}

// TestVerdicts: what each end of an attempt means for the queue.
func TestVerdicts(t *testing.T) {
	t.Parallel()

	coded := func(c phases.Cause) error { return phases.Errorf(c, "because") }
	tests := []struct {
		name    string
		err     error
		attempt int
		want    jobs.Action
	}{
		{"success", nil, 1, jobs.Done},
		{"failure", errors.New("down"), 1, jobs.Retry},
		{"last failure", errors.New("down"), 5, jobs.Discard},
		{"no plugin", coded(phases.CauseUnavailable), 5, jobs.Requeue},
		{"no grant", coded(phases.CauseForbidden), 1, jobs.Discard},
		{"its own cancellation", coded(phases.CauseCancelled), 1, jobs.Retry},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			q, h := newByHand(), newHosted(plugin("p", asking(job(""))))
			h.opts.Queue = q
			h.opts.Jobs = map[string]func(context.Context, jobs.Job) error{
				"k": func(context.Context, jobs.Job) error { return tt.err },
			}
			dispatch(t, h.start(t), &phases.PrePolicyInput{})
			work := <-q.work
			v := work(t.Context(), jobs.Attempt{Job: <-q.jobs, Number: tt.attempt})
			if v.Action != tt.want || !errors.Is(v.Err, tt.err) {
				t.Errorf("verdict = %+v, want %s", v, tt.want)
			}
		})
	}
}

// TestQueuedHookAfterReload: what the operator has changed since a hook was
// queued counts when it is its turn.
func TestQueuedHookAfterReload(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(h *hosted)
		want   jobs.Action
		calls  int
	}{
		{"nothing", func(*hosted) {}, jobs.Done, 1},
		{"disabled", func(h *hosted) { h.override("p.end", phases.Override{Enabled: new(false)}) }, jobs.Discard, 0},
		{"filtered", func(h *hosted) { h.override("p.end", phases.Override{When: new("flags.go")}) }, jobs.Done, 0},
		{"bad condition", func(h *hosted) { h.override("p.end", phases.Override{When: new(`input.tool_events[3].tool == "x"`)}) }, jobs.Discard, 0},
		{"gone", func(h *hosted) { h.cfg.Plugins = nil }, jobs.Discard, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var log journal
			q, h := newByHand(), newHosted(plugin("p", on("end", phases.PostTurn, log.noting("called", reply()))))
			h.opts.Queue = q
			eng := h.start(t)
			dispatch(t, eng, &phases.PostTurnInput{Status: phases.TurnSucceeded})
			next := *h
			next.cfg.Plugins = slices.Clone(h.cfg.Plugins)
			tt.change(&next)
			reload(t, eng, &next.cfg)
			work := <-q.work
			if v := work(t.Context(), jobs.Attempt{Job: <-q.jobs, Number: 1}); v.Action != tt.want {
				t.Errorf("verdict = %+v, want %s", v, tt.want)
			}
			if got := len(log.all()); got != tt.calls {
				t.Errorf("%d calls, want %d", got, tt.calls)
			}
		})
	}
}

// TestQueuedHookWaitsForItsPlugin: a plugin that is not up costs no attempt.
func TestQueuedHookWaitsForItsPlugin(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var log journal
		starts := 0
		p := plugin("p", on("end", phases.PostTurn, log.noting("called", reply())))
		onStart(p, func(context.Context) error {
			if starts++; starts < 4 {
				return sdk.Fail("down", "it cannot start yet")
			}
			return nil
		})
		h := newHosted(p).override("p.end", phases.Override{Phase: new(phases.PostTurn)})
		h.opts.OnEvent = log.events(runtime.EventJob)
		dispatch(t, h.start(t), &phases.PostTurnInput{Status: phases.TurnSucceeded})
		time.Sleep(time.Minute)
		lines := log.all()
		if len(lines) < 3 || lines[0] != "p requeued unavailable" {
			t.Fatalf("events = %q", lines)
		}
		checkSame(t, "the end", lines[len(lines)-2:], []string{"called", "p done"})
	})
}

// TestQueuedHookOfQuarantine: nobody waits for ever for a plugin that only an
// operator can bring back, and its loss is told.
func TestQueuedHookOfQuarantine(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var jobs, open journal
		p := plugin("p", on("end", phases.PostTurn, reply()))
		onStart(p, func(context.Context) error { return phases.Errorf(phases.CauseVersionMismatch, "it is too old") })
		h := newHosted(p).override("p.end", phases.Override{Phase: new(phases.PostTurn)})
		h.opts.OnEvent = func(e runtime.Event) {
			jobs.events(runtime.EventJob)(e)
			open.events(runtime.EventFailOpen)(e)
		}
		dispatch(t, h.start(t), &phases.PostTurnInput{Status: phases.TurnSucceeded})
		time.Sleep(9 * time.Minute)
		if got := open.all(); len(got) > 0 || slices.Contains(jobs.all(), "p discarded quarantined") {
			t.Fatalf("given up early: %q", got)
		}
		time.Sleep(2 * time.Minute)
		lines := jobs.all()
		if last := lines[len(lines)-1]; last != "p discarded quarantined" {
			t.Errorf("the last event is %q", last)
		}
		checkSame(t, "fail_open", open.all(), []string{"p quarantined"})
	})
}

// TestQueuedAttempts: the plugin is told which attempt it is, and one that fails
// each of them fails open once.
func TestQueuedAttempts(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var calls, jobs, open journal
		hook := on("end", phases.PostTurn, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			calls.add(fmt.Sprintf("attempt %d", c.Attempt))
			return nil, sdk.Fail("down", "not now")
		})
		hook.Idempotent = true
		hook.Retry = &phases.Retry{Attempts: 3, Backoff: phases.Duration(time.Second)}
		h := newHosted(plugin("p", hook))
		h.opts.OnEvent = func(e runtime.Event) {
			jobs.events(runtime.EventJob)(e)
			open.events(runtime.EventFailOpen)(e)
		}
		dispatch(t, h.start(t), &phases.PostTurnInput{Status: phases.TurnSucceeded})
		time.Sleep(time.Minute)
		checkSame(t, "calls", calls.all(), []string{"attempt 1", "attempt 2", "attempt 3"})
		checkSame(t, "events", jobs.all(), []string{"p retry plugin_error", "p retry plugin_error", "p discarded plugin_error"})
		checkSame(t, "fail_open", open.all(), []string{"p plugin_error"})
	})
}

// TestObserversSee: an observer sees the turn's sets as far as it may, and its
// condition is asked about the policies of its turn.
func TestObserversSee(t *testing.T) {
	t.Parallel()

	var log journal
	look := func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		log.add(fmt.Sprintf("%s: %d policies, %d contexts", c.Subscription, len(c.Policies), len(c.Contexts)))
		return nil, nil
	}
	h := newHosted(
		plugin("a",
			on("policy", phases.PrePolicy, reply(policyOf("k", `"on"`)), phases.KindPolicy),
			on("context", phases.PrePromptContext, reply(contextOf("c", "text")), phases.KindPromptContext),
		),
		plugin("free", on("end", phases.PostTurn, look)),
		plugin("bound", on("end", phases.PostTurn, look)),
	)
	h.plugin("bound").Grants.See = nil
	h.override("bound.end", phases.Override{When: new(`policy["d/k"] == "on"`)})
	eng := h.start(t)
	turn := begin(t, eng)
	outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
	outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptContextInput{}))
	outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{Status: phases.TurnSucceeded}))
	waitBackground(t, eng)
	want := []string{"bound.end: 0 policies, 0 contexts", "free.end: 1 policies, 1 contexts"}
	checkSame(t, "seen", sorted(log.all()), want)
}

// TestBackgroundRemarks: what background work remarks is told, of hooks and of jobs,
// and a flood of it is bounded like that of a turn.
func TestBackgroundRemarks(t *testing.T) {
	t.Parallel()

	remark := func(code string) phases.Diagnostic {
		return phases.Diagnostic{Code: code, Severity: phases.SeverityWarning, Message: "because"}
	}
	flood := &phases.Noop{}
	for n := range 200 {
		flood.Diagnostics = append(flood.Diagnostics, remark(fmt.Sprint("r", n)))
	}
	hook := &phases.Noop{Common: phases.Common{Diagnostics: []phases.Diagnostic{remark("of_hook")}}}
	p := plugin("p", asking(&phases.BackgroundJob{JobKind: "work", Payload: raw(`{}`)}), on("end", phases.PostTurn, reply(hook)))
	p.Tools = []sdk.Tool{gives("work", &phases.ToolResult{Content: raw(`""`), Diagnostics: []phases.Diagnostic{remark("of_job")}}, nil)}
	var log journal
	h := newHosted(p, plugin("loud", on("end", phases.PostTurn, reply(flood))))
	h.opts.OnEvent = log.events(runtime.EventDiagnostic)
	eng := h.start(t)
	dispatch(t, eng, &phases.PrePolicyInput{})
	dispatch(t, eng, &phases.PostTurnInput{Status: phases.TurnSucceeded})
	waitBackground(t, eng)
	var own, loud []string
	for _, line := range log.all() {
		if strings.HasPrefix(line, "p ") {
			own = append(own, line)
		} else {
			loud = append(loud, line)
		}
	}
	checkSame(t, "remarks", sorted(own), []string{"p warning of_hook", "p warning of_job"})
	if len(loud) != 65 || loud[64] != "loud warning diagnostics_dropped" {
		t.Errorf("%d remarks of a flood, the last is %q", len(loud), loud[max(0, len(loud)-1)])
	}
}
