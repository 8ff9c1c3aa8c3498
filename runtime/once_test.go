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

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestBegins: what does not say that it may be called twice begins before the plugin
// is called, all else never; and what ends without the plugin's own word that
// nothing came of it is not repeated.
func TestBegins(t *testing.T) {
	t.Parallel()

	failed, late, panicked := sdk.Fail("down", "not now"), errTakesLong, sdk.Fail(phases.PluginCodePanic, "panic: half-way")
	tests := []struct {
		name       string
		hook       bool
		repeatable bool
		err        error
		want       jobs.Action
		cause      phases.Cause
	}{
		{"hook", true, false, nil, jobs.Done, ""},
		{"failed hook", true, false, failed, jobs.Discard, phases.CausePluginError},
		{"job with a key", false, true, nil, jobs.Done, ""},
		{"failed job", false, false, failed, jobs.Retry, phases.CausePluginError},
		{"failed job with a key", false, true, failed, jobs.Retry, phases.CausePluginError},
		{"job that panicked", false, false, panicked, jobs.Discard, phases.CausePluginError},
		{"late job", false, false, late, jobs.Discard, phases.CauseTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var log journal
			work, j := queuedWork(t, &log, tt.hook, tt.repeatable, tt.err)
			v := work(t.Context(), jobs.Attempt{Job: j, Number: 1, Begin: func(context.Context) error {
				log.add("begun")
				return nil
			}})
			want := []string{"begun", "called"}
			if tt.repeatable {
				want = want[1:]
			}
			checkSame(t, "what happened", log.all(), want)
			if v.Action != tt.want || phases.CodeOf(v.Err) != tt.cause {
				t.Errorf("verdict = %+v, want %s %s", v, tt.want, tt.cause)
			}
		})
	}
}

// errTakesLong stands for a call that has no answer in time.
var errTakesLong = errors.New("it takes long")

// queuedWork queues a hook, or a job that a tool does, which notes that it was
// called. The plugin is told to answer within little time.
func queuedWork(t *testing.T, log *journal, hook, repeatable bool, err error) (func(context.Context, jobs.Attempt) jobs.Result, jobs.Job) {
	t.Helper()
	called := func(ctx context.Context) error {
		log.add("called")
		if errors.Is(err, errTakesLong) {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	}
	asked := &phases.BackgroundJob{JobKind: "do", Payload: raw(`{}`)}
	end := on("end", phases.PostTurn, func(ctx context.Context, _ *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		return nil, called(ctx)
	})
	if end.Idempotent = repeatable; repeatable {
		asked.IdempotencyKey = "once"
	}
	p := plugin("p", asking(asked), end)
	p.Tools = []sdk.Tool{tool("do", func(ctx context.Context, _ *sdk.ToolCall) (*phases.ToolResult, error) {
		return &phases.ToolResult{Content: raw(`{}`)}, called(ctx)
	})}
	q, h := newByHand(), newHosted(p)
	h.plugin("p").Limits.Tool = phases.Duration(50 * time.Millisecond)
	h.opts.Queue = q
	eng := h.start(t)
	if hook {
		dispatch(t, eng, &phases.PostTurnInput{Status: phases.TurnSucceeded})
	} else {
		dispatch(t, eng, &phases.PrePolicyInput{})
	}
	return <-q.work, <-q.jobs
}

// TestBeginFails: what cannot be noted to have begun is not done, and tried again.
func TestBeginFails(t *testing.T) {
	t.Parallel()

	for name, hook := range map[string]bool{"hook": true, "job": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var log journal
			work, j := queuedWork(t, &log, hook, false, nil)
			gone := errors.New("the database is away")
			for range 40 { // also where slots and breaker have their numbers
				v := work(t.Context(), jobs.Attempt{Job: j, Number: 1, Begin: func(context.Context) error { return gone }})
				if v.Action != jobs.Requeue || !errors.Is(v.Err, gone) {
					t.Fatalf("verdict = %+v", v)
				}
			}
			if v := work(t.Context(), jobs.Attempt{Job: j, Number: 1}); v.Action != jobs.Done || len(log.all()) != 1 {
				t.Errorf("verdict = %+v after %q", v, log.all())
			}
		})
	}
}

// TestInterruptedAfterItBegan: the end of the engine, or of the lease, is the end of
// what had begun; what had not is offered again.
func TestInterruptedAfterItBegan(t *testing.T) {
	t.Parallel()

	for name, repeatable := range map[string]bool{"once": false, "repeatable": true} {
		for _, hook := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				var log journal
				work, j := queuedWork(t, &log, hook, repeatable, errTakesLong)
				why := errors.New("the lease was lost")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				want, cause := jobs.Discard, phases.CauseInterrupted
				if repeatable {
					cancel(why)
					want, cause = jobs.Requeue, phases.CauseInternal
				}
				v := work(ctx, jobs.Attempt{Job: j, Number: 1, Begin: func(context.Context) error {
					cancel(why)
					return nil
				}})
				if v.Action != want || !errors.Is(v.Err, why) || phases.CodeOf(v.Err) != cause {
					t.Errorf("verdict = %+v, want %s", v, want)
				}
			})
		}
	}
}

// TestWorkOfOthers: what this engine has no use for may be another's, if there are
// others; and a plugin that was never up may have any hook.
func TestWorkOfOthers(t *testing.T) {
	t.Parallel()

	q, h := newByHand(), newHosted(plugin("p", on("end", phases.PostTurn, reply())), plugin("slow"))
	h.opts.Queue = q
	h.opts.WaitFor = runtime.WaitRequired
	release := make(chan struct{})
	defer close(release)
	h.opts.InProcess["slow"] = onStart(plugin("slow"), func(context.Context) error { <-release; return nil })
	eng := h.start(t)
	work := <-q.work
	for rowOf(t, eng, "p").State != phases.PluginReady {
		if t.Context().Err() != nil {
			t.Fatal("the plugin was never up")
		}
	}
	hook := func(name string) jobs.Job {
		return jobs.Job{Plugin: name, Subscription: name + ".end", Phase: phases.PostTurn, Context: host(), Payload: raw(`{"status":"succeeded"}`)}
	}
	other := hook("other")
	gone := hook("p")
	gone.Subscription = "p.gone"
	tool := jobs.Job{Kind: "do", Plugin: "other", Payload: raw(`{}`)}
	for name, tt := range map[string]struct {
		attempt jobs.Attempt
		want    jobs.Action
	}{
		"alone":                {jobs.Attempt{Job: other}, jobs.Discard},
		"shared":               {jobs.Attempt{Job: other, Shared: true}, jobs.Requeue},
		"shared, its hook":     {jobs.Attempt{Job: gone, Shared: true}, jobs.Requeue},
		"shared, its tool":     {jobs.Attempt{Job: tool, Shared: true}, jobs.Requeue},
		"offered often enough": {jobs.Attempt{Job: other, Shared: true, Requeued: 60}, jobs.Discard},
		"not up yet":           {jobs.Attempt{Job: hook("slow")}, jobs.Requeue},
		"its own":              {jobs.Attempt{Job: hook("p"), Shared: true}, jobs.Done},
	} {
		tt.attempt.Number = 1
		if v := work(t.Context(), tt.attempt); v.Action != tt.want {
			t.Errorf("%s: verdict = %+v, want %s", name, v, tt.want)
		}
	}
}

// TestQueueStatus: an engine says where its background work is, and how much.
func TestQueueStatus(t *testing.T) {
	t.Parallel()

	block := make(chan struct{})
	later := job("")
	later.NotBefore = time.Now().Add(time.Hour)
	h := newHosted(plugin("p", asking(slices.Repeat([]phases.Contribution{job("")}, 6)...)), plugin("q", asking(later)))
	h.opts.Jobs = map[string]func(context.Context, jobs.Job) error{"k": func(context.Context, jobs.Job) error {
		<-block
		return nil
	}}
	eng := h.start(t)
	defer close(block)
	if got := eng.Queue(t.Context()); got != (runtime.QueueStatus{}) {
		t.Errorf("at first: %+v", got)
	}
	dispatch(t, eng, &phases.PrePolicyInput{})
	for got := eng.Queue(t.Context()); got.Running < 4; got = eng.Queue(t.Context()) {
		if t.Context().Err() != nil {
			t.Fatalf("status %+v", got)
		}
	}
	got := eng.Queue(t.Context())
	if got.OldestSeconds <= 0 {
		t.Errorf("the oldest waits for %g s", got.OldestSeconds)
	}
	got.OldestSeconds = 0
	if want := (runtime.QueueStatus{Counts: jobs.Counts{Waiting: 2, Scheduled: 1, Running: 4}}); got != want {
		t.Errorf("status %+v, want %+v", got, want)
	}

	h = newHosted(plugin("p"))
	h.opts.Queue = newByHand()
	if got := h.start(t).Queue(t.Context()); !got.Durable || got.Error == "" {
		t.Errorf("a queue that does not count: %+v", got)
	}
	counting := &countingQueue{byHand: newByHand(), err: errors.New("away")}
	h.opts.Queue = counting
	eng = h.start(t)
	if got := eng.Queue(t.Context()); !got.Durable || got.Error != "away" || got.Waiting != 0 {
		t.Errorf("a queue that is away: %+v", got)
	}
	counting.err = nil
	if got := eng.Queue(t.Context()); got.Error != "" || got.Waiting != 3 {
		t.Errorf("a queue that counts: %+v", got)
	}
}

// countingQueue is a queue that counts, or fails to.
type countingQueue struct {
	*byHand

	err error
}

func (q *countingQueue) Counts(context.Context) (jobs.Counts, error) {
	return jobs.Counts{Waiting: 3}, q.err
}

// TestStoreThatIsNotThere: an operator who has named a store is told what the host
// does without one, and no more.
func TestStoreThatIsNotThere(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		queue jobs.Queue
		want  string
	}{
		"neither": {nil, "this host has no store: manifests are not kept, and background work is lost when this process ends"},
		"a queue": {newByHand(), "manifests are not kept: this host has no store for them"},
	} {
		h := newHosted(plugin("p"))
		h.cfg.Store = config.Secret{Value: "sqlite:x.db"}
		h.opts.Queue = tt.queue
		said := slices.IndexFunc(h.start(t).Diagnostics(), func(d phases.Diagnostic) bool { return d.Slot == "store" && d.Message == tt.want })
		if said < 0 {
			t.Errorf("%s: it does not say %q", name, tt.want)
		}
	}
}

// TestCollect: who waits learns how each hook ended, at its last attempt, and what it
// queued itself; what others queue meanwhile, and what is for later, is none of it.
func TestCollect(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		tries := 0
		twice := func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			if c.Context.TurnID == "" {
				return nil, nil
			}
			if tries++; tries == 1 {
				return nil, &phases.Error{Code: phases.CausePluginError, PluginCode: "busy", Message: "not yet"}
			}
			return sdk.Reply(&phases.Audit{EventKind: "done"})
		}
		again := on("b_twice", phases.PostTurn, twice, phases.KindAudit)
		again.Idempotent = true
		h := newHosted(plugin("p",
			on("a_jobs", phases.PostTurn, reply(
				&phases.BackgroundJob{JobKind: "now"}, &phases.BackgroundJob{JobKind: "later", NotBefore: time.Now().Add(time.Hour)},
			), phases.KindBackgroundJob),
			again,
			on("c_broken", phases.PostTurn, failing(errors.New("never"))),
		))
		h.override("p.b_twice", phases.Override{Retry: &phases.Retry{Attempts: 3, Backoff: phases.Duration(time.Minute)}})
		h.cfg.Plugins[0].Grants = allGrants()
		h.opts.Jobs = map[string]func(context.Context, jobs.Job) error{
			"now": func(context.Context, jobs.Job) error { return nil }, "later": func(context.Context, jobs.Job) error { return nil },
		}
		eng := h.start(t)
		ctx, wait := eng.Collect(t.Context())
		outcome(t)(eng.Dispatch(ctx, host(), &phases.PostTurnInput{}))
		outcome(t)(eng.Dispatch(t.Context(), phases.Context{}, &phases.PostTurnInput{})) // somebody else's
		rows, err := wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s%s: %s %s after %d %v", r.Subscription, r.Kind, r.Phase, r.State, r.Code, r.Attempts, r.Contributions)))
			for _, d := range r.Diagnostics {
				if d.Message == "" {
					t.Errorf("%s has an empty remark", r.Subscription)
				}
			}
		}
		checkSame(t, "runs", got, []string{
			"p.a_jobs turn.post_turn: succeeded  after 1 [background_job background_job]",
			"p.b_twice turn.post_turn: succeeded  after 2 [audit]",
			"p.c_broken turn.post_turn: failed plugin_error after 1 []",
			"p.a_jobs now: succeeded  after 1 []",
			"p.a_jobs later: queued  after 0 []",
		})

		// Who has no more time learns what is known.
		ctx, wait = eng.Collect(t.Context())
		tries = 0
		outcome(t)(eng.Dispatch(ctx, host(), &phases.PostTurnInput{}))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if rows, err = wait(short); !errors.Is(err, context.DeadlineExceeded) || len(rows) != 5 || rows[1].State != phases.StateQueued || rows[1].Attempts != 1 || rows[1].Code != "plugin_error" {
			t.Errorf("%v: %+v", err, rows)
		}
	})
}

// TestHandlerPanics: a handler of the host that panics has failed, as a hook that does; it is tried again.
func TestHandlerPanics(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := newHosted(plugin("p", on("jobs", phases.PostTurn, reply(&phases.BackgroundJob{JobKind: "now"}), phases.KindBackgroundJob)))
		h.cfg.Plugins[0].Grants = allGrants()
		tries := 0
		h.opts.Jobs = map[string]func(context.Context, jobs.Job) error{"now": func(context.Context, jobs.Job) error { tries++; panic("ouch") }}
		eng := h.start(t)
		ctx, wait := eng.Collect(t.Context())
		outcome(t)(eng.Dispatch(ctx, host(), &phases.PostTurnInput{}))
		rows, err := wait(t.Context())
		if err != nil || len(rows) != 2 || rows[1].State != phases.StateFailed || rows[1].Attempts != 5 || tries != 5 {
			t.Errorf("%d tries, %v: %+v", tries, err, rows)
		}
	})
}
