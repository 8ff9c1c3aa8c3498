package supervise

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mute is a check of a service that does not answer.
func mute(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// sequence is a check that answers by the list, then well.
func sequence(checks ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if len(checks) == 0 {
			return nil
		}
		check := checks[0]
		checks = checks[1:]
		return check(ctx)
	}
}

func TestHealthThreeMisses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{Health: Health{Check: sequence(mute, mute, mute)}})
		r.serve()
		pause(30 * time.Second)
		r.mustHalt()
		checkLog(t, r, "0s starting", "0s ready",
			"7s degraded timeout: 1 health check missed: no answer within the deadline",
			"14s degraded timeout: 2 health checks missed in a row: no answer within the deadline",
			"21s backoff timeout: 3 health checks missed in a row (in 100ms)",
			"21.1s starting", "21.1s ready", "30s draining: host stops", "30s stopped")
		if f := r.Status().Last; !errors.Is(f, errMissed) || f.Class != ClassOrdinary {
			t.Errorf("failure = %+v, want the missed check as cause", f)
		}
	})
}

func TestHealthRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		well := func(context.Context) error { return nil }
		bad := func(context.Context) error { return errCause }
		r := newRig(t, Options{Health: Health{
			Check: sequence(bad, bad, well, bad, well), Interval: time.Second, Misses: 3,
		}})
		r.serve()
		pause(10 * time.Second)
		r.mustHalt()
		checkLog(t, r, "0s starting", "0s ready",
			"1s degraded timeout: 1 health check missed: the cause",
			"2s degraded timeout: 2 health checks missed in a row: the cause",
			"3s ready", "4s degraded timeout: 1 health check missed: the cause", "5s ready",
			"10s draining: host stops", "10s stopped")
	})
}

// TestHealthAfterSleep has one check return long after its deadline, as happens
// when the machine has slept while it was on its way. That is a single miss, and
// the next check comes a whole interval later.
func TestHealthAfterSleep(t *testing.T) {
	t.Parallel()
	for want, answer := range map[State]error{StateDegraded: errCause, StateReady: nil} { // a late answer is an answer
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var begun []time.Duration
				start := time.Now()
				asleep := func(context.Context) error { time.Sleep(8 * time.Hour); return answer }
				checks := sequence(asleep)
				r := newRig(t, Options{Health: Health{
					Interval: 5 * time.Second,
					Check: func(ctx context.Context) error {
						begun = append(begun, time.Since(start))
						return checks(ctx)
					},
				}})
				r.serve()
				pause(8*time.Hour + 9*time.Second)
				if st := r.Status(); st.State != want || st.Restarts != 0 {
					t.Errorf("status after waking = %+v, want %v", st, want)
				}
				pause(time.Second)
				if st := r.Status(); st.State != StateReady || st.Restarts != 0 {
					t.Errorf("status after the next check = %+v, want ready", st)
				}
				r.mustHalt()
				if diff := cmp.Diff(begun, []time.Duration{5 * time.Second, 8*time.Hour + 10*time.Second}); diff != "" {
					t.Errorf("checks began: got -, want +\n%s", diff)
				}
			})
		})
	}
}

// TestHealthStaysWithItsIncarnation checks that no check is on its way while a
// service is started, and that misses of one incarnation do not count for the
// next.
func TestHealthStaysWithItsIncarnation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := 0
		check := sequence(mute, mute, mute, mute)
		r := newRig(t, Options{Health: Health{Check: func(ctx context.Context) error {
			busy++
			defer func() { busy-- }()
			err := check(ctx)
			if err != nil {
				time.Sleep(time.Second) // slow to leave: longer than the backoff
			}
			return err
		}}})
		r.service.onStart = func(context.Context, uint64) error {
			if busy != 0 {
				t.Error("a check of the incarnation before is on its way")
			}
			return nil
		}
		r.serve()
		pause(14 * time.Second) // one miss, the second check on its way
		r.service.crash(nil)
		pause(time.Second)
		pause(16 * time.Second)
		if st := r.Status(); st.State != StateDegraded || st.Incarnation != 2 {
			t.Errorf("status = %+v, want the second incarnation, degraded", st)
		}
		r.mustHalt()
	})
}

// TestNotHealthy crashes a service that was up for long, but degraded by its owner or by two of three checks: its streak
// of failures is not forgotten.
func TestNotHealthy(t *testing.T) {
	t.Parallel()
	n := 0
	twoOfThree := func(context.Context) error {
		if n++; n%3 == 0 {
			return nil
		}
		return errCause
	}
	const owner = "by its owner, whatever its checks say"
	for name, check := range map[string]func(context.Context) error{owner: sequence(mute), "by its checks": twoOfThree} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Options{Health: Health{Check: check}})
				r.serve()
				r.service.crash(nil)
				pause(100 * time.Millisecond)
				if name == owner {
					r.Degrade(Any, "x", "")
				}
				pause(10 * time.Minute)
				r.service.crash(nil)
				synctest.Wait()
				if got, want := time.Until(r.Status().NextAttempt), 200*time.Millisecond; got != want {
					t.Errorf("delay = %v, want %v", got, want)
				}
				r.mustHalt()
			})
		})
	}
}
