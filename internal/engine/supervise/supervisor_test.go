package supervise

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// checkLog compares the events with what they should be.
func checkLog(t *testing.T, r *rig, want ...string) {
	t.Helper()
	if diff := cmp.Diff(r.log(), want); diff != "" {
		t.Errorf("events: got -, want +\n%s", diff)
	}
}

// over is a context that is over.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestReadyThenStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStart = func(context.Context, uint64) error { time.Sleep(time.Second); return nil }
		r.service.onStop = func(context.Context) error { time.Sleep(2 * time.Second); return nil }
		if got := r.Status(); got.State != StateDeclared || !got.Since.Equal(r.begun) {
			t.Errorf("status = %+v, want declared", got)
		}
		if r.Report(Any, Failure{}) || r.Recycle(Any, "") || r.Degrade(Any, "", "") || r.Restore(Any) || r.Release() {
			t.Error("an order was taken before Serve")
		}
		if err := r.Wait(over(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want the context's end", err)
		}
		r.serve()
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.Status(); got.State != StateReady || got.Incarnation != 1 || got.Restarts != 0 {
			t.Errorf("status = %+v, want ready, first incarnation", got)
		}
		pause(time.Minute)
		r.mustHalt()
		checkLog(t, r, "0s starting", "1s ready", "1m1s draining: host stops", "1m3s stopped")
		if err := r.Serve(t.Context()); !errors.Is(err, ErrServed) {
			t.Errorf("second Serve = %v, want ErrServed", err)
		}
		if r.Recycle(Any, "late") || r.Release() {
			t.Error("an order was taken after Serve")
		}
	})
}

// TestCrashLoop is a service that crashes as soon as it is up, again and again.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, Options{OnEvent: func(e Event) {
			if e.Status.State == StateReady {
				r.service.crash(&Failure{Code: "crash", Detail: "exit status 2"})
			}
		}})
		r.serve()
		if err := r.Wait(t.Context()); err != nil {
			t.Errorf("Wait = %v: the first start did succeed", err)
		}
		pause(time.Hour)
		st := r.Status()
		if st.State != StateQuarantined || st.Failures != 5 || st.Restarts != 4 || st.Last.Detail != "exit status 2" {
			t.Errorf("status = %+v, want quarantine after 5 failures and 4 restarts", st)
		}
		r.mustHalt()
		checkLog(t, r,
			"0s starting", "0s ready", "0s backoff crash: exit status 2 (in 100ms)",
			"100ms starting", "100ms ready", "100ms backoff crash: exit status 2 (in 200ms)",
			"300ms starting", "300ms ready", "300ms backoff crash: exit status 2 (in 400ms)",
			"700ms starting", "700ms ready", "700ms backoff crash: exit status 2 (in 800ms)",
			"1.5s starting", "1.5s ready",
			"1.5s quarantined crash: 5 failures within 5m0s, the last: exit status 2",
			"1h0m0s stopped",
		)
	})
}

// TestStartFailures is what becomes of the errors of Start, by their class.
func TestStartFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"foreign error", errCause, "0s backoff internal: the cause (in 100ms)"},
		{"permanent", &Failure{Class: ClassPermanent, Code: "exec_failed", Detail: "no such file"}, "0s quarantined exec_failed: no such file"},
		{"resource", &Failure{Class: ClassResource, Code: "unavailable", Detail: "EAGAIN"}, "0s backoff unavailable: EAGAIN (in 100ms)"},
		{"memory", &Failure{Class: ClassMemory, Code: "oom"}, "0s backoff oom (in 5s)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Options{})
				r.service.onStart = func(context.Context, uint64) error { return tt.err }
				r.serve()
				f, ok := errors.AsType[*Failure](r.Wait(t.Context()))
				if !ok || f != r.Status().Last {
					t.Errorf("Wait = %v, want the failure of the status, %v", f, r.Status().Last)
				}
				r.mustHalt()
				checkLog(t, r, "0s starting", tt.want, "0s stopped")
			})
		})
	}
}

func TestStartTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{StartTimeout: 3 * time.Second})
		r.service.onStart = func(ctx context.Context, _ uint64) error { <-ctx.Done(); return ctx.Err() }
		r.serve()
		f, ok := errors.AsType[*Failure](r.Wait(t.Context()))
		if !ok || f.Code != CodeStartTimeout || !errors.Is(f, context.DeadlineExceeded) {
			t.Errorf("Wait = %v, want start_timeout", f)
		}
		r.mustHalt()
		checkLog(t, r, "0s starting", "3s backoff start_timeout: the start took too long (in 100ms)", "3s stopped")
	})
}

// TestStopWhileStarting calls the stop while the start is on its way, for starts
// that fail then and for one that succeeds all the same.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		result error
		want   []string
	}{
		{"start gives up", errCause, []string{"0s starting", "1s stopped"}},
		{"start succeeds", nil, []string{"0s starting", "1s draining: host stops", "1s stopped"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Options{})
				r.service.onStart = func(ctx context.Context, _ uint64) error { <-ctx.Done(); return tt.result }
				r.serve()
				pause(time.Second)
				r.mustHalt()
				if n := r.service.starts.Load(); n != 1 {
					t.Errorf("%d starts, want 1", n)
				}
				if err := r.Wait(t.Context()); !errors.Is(err, ErrStopped) {
					t.Errorf("Wait = %v, want ErrStopped", err)
				}
				checkLog(t, r, tt.want...)
			})
		})
	}
}

// TestStopWhileWaiting stops in backoff, in quarantine and while the remains of
// a failed run are being stopped.
func TestStopWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]Class{"backoff": ClassMemory, "quarantine": ClassPermanent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Options{})
				r.service.onStop = func(context.Context) error { time.Sleep(time.Second); return nil }
				r.serve()
				r.service.crash(&Failure{Class: class, Code: "x"})
				pause(500 * time.Millisecond) // the stop of the remains is at work
				r.mustHalt()
				if got := time.Since(r.begun); got != time.Second {
					t.Errorf("stopped after %v, want 1s: no wait beside the stop", got)
				}
			})
		})
	}
}

func TestStopTimeoutAndError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStop = func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
		r.serve()
		if err := r.halt(); !errors.Is(err, errStopTimeout) {
			t.Errorf("Serve = %v, want the stop's error", err)
		}
		checkLog(t, r, "0s starting", "0s ready", "0s draining: host stops",
			"2.3s stopped internal: supervise: stopping incarnation 1 of fake: the stop took too long")
	})
}

// TestStopErrorBeforeRestart shows the error of a stop beside the failure that
// led to it, and does not let the delay begin anew.
func TestStopErrorBeforeRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStop = func(context.Context) error {
			time.Sleep(60 * time.Millisecond)
			return errCause
		}
		r.serve()
		r.service.crash(&Failure{Code: "crash", Detail: "exit status 1"})
		pause(100 * time.Millisecond)
		r.service.onStop = nil
		r.mustHalt()
		checkLog(t, r, "0s starting", "0s ready", "0s backoff crash: exit status 1 (in 100ms)",
			"60ms backoff crash: exit status 1; supervise: stopping incarnation 1 of fake: the cause (in 40ms)",
			"100ms starting", "100ms ready", "100ms draining: host stops", "100ms stopped")
	})
}

func TestWaitSettlesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStart = func(_ context.Context, incarnation uint64) error {
			if incarnation == 1 {
				return errCause
			}
			return nil
		}
		r.serve()
		pause(time.Second)
		if got := r.Status().State; got != StateReady {
			t.Fatalf("state = %v, want ready", got)
		}
		// Even an ended context is told the outcome, if there is one.
		for _, ctx := range []context.Context{t.Context(), over(t)} {
			if err := r.Wait(ctx); !errors.Is(err, errCause) {
				t.Errorf("Wait = %v, want the first outcome", err)
			}
		}
		r.mustHalt()
	})
}

// TestHealthyResetsBackoff crashes a service twice in a row, and then after it
// was well for a minute.
func TestHealthyResetsBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.serve()
		var delays []time.Duration
		for _, well := range []time.Duration{0, 59 * time.Second, 60 * time.Second, 0} {
			pause(well)
			r.service.crash(nil)
			synctest.Wait()
			delays = append(delays, time.Until(r.Status().NextAttempt))
			pause(delays[len(delays)-1])
		}
		const ms = time.Millisecond
		if diff := cmp.Diff(delays, []time.Duration{100 * ms, 200 * ms, 100 * ms, 200 * ms}); diff != "" {
			t.Errorf("delays: got -, want +\n%s", diff)
		}
		r.mustHalt()
	})
}
