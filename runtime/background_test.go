package runtime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

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
		for i := range rows {
			rows[i].DurationMS, rows[i].PluginCode = 0, ""
			for _, d := range rows[i].Diagnostics {
				if d.Message == "" {
					t.Errorf("%s has an empty remark", rows[i].Subscription)
				}
			}
			rows[i].Diagnostics = nil
		}
		row := func(hook, kind string, state phases.RunState, code phases.Cause, attempts int, kinds ...phases.Kind) phases.BackgroundRun {
			r := phases.BackgroundRun{Kind: kind, Plugin: "p", Subscription: "p." + hook, State: state, Code: string(code), Attempts: attempts, Contributions: append([]phases.Kind{}, kinds...)}
			if kind == "" {
				r.Phase = phases.PostTurn
			}
			return r
		}
		want := []phases.BackgroundRun{
			row("a_jobs", "", phases.StateSucceeded, "", 1, phases.KindBackgroundJob, phases.KindBackgroundJob),
			row("b_twice", "", phases.StateSucceeded, "", 2, phases.KindAudit),
			row("c_broken", "", phases.StateFailed, phases.CausePluginError, 1),
			row("a_jobs", "now", phases.StateSucceeded, "", 1),
			row("a_jobs", "later", phases.StateQueued, "", 0),
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}

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
