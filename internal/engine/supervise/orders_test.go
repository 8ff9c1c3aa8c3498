package supervise

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStop = func(context.Context) error { time.Sleep(time.Second); return nil }
		r.serve()
		for i := range uint64(20) {
			if !r.Recycle(i+1, "too many abandoned calls") {
				t.Fatalf("incarnation %d: Recycle was not taken", i+1)
			}
			if r.Recycle(i+1, "again") || r.Report(i+1, Failure{}) {
				t.Errorf("incarnation %d: a second order was taken", i+1)
			}
			pause(time.Second)
		}
		st := r.Status()
		if st.State != StateReady || st.Restarts != 20 || st.Failures != 0 || st.Last != nil || st.Incarnation != 21 {
			t.Errorf("status = %+v, want ready after 20 restarts without a failure", st)
		}
		if r.Recycle(20, "stale") {
			t.Error("an order for an earlier incarnation was taken")
		}
		r.mustHalt()
		if got, want := r.log()[2], "0s draining: too many abandoned calls"; got != want {
			t.Errorf("third event %q, want %q", got, want)
		}
	})
}

// TestRecycleOfOneThatLeaves lets the service end by itself after the order, as
// one does that was told to drain. That is no crash.
func TestRecycleOfOneThatLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.serve()
		r.Recycle(Any, "new binary")
		r.service.crash(nil)
		synctest.Wait()
		r.mustHalt()
		checkLog(t, r, "0s starting", "0s ready", "0s draining: new binary",
			"0s starting", "0s ready", "0s draining: host stops", "0s stopped")
	})
}

func TestRecycleWhileStarting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStart = func(ctx context.Context, incarnation uint64) error {
			if incarnation > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		r.serve()
		if !r.Recycle(1, "configuration changed") {
			t.Error("Recycle was not taken")
		}
		if err := r.Wait(t.Context()); err != nil {
			t.Errorf("Wait = %v, want nil: a start that was called off has not failed", err)
		}
		r.mustHalt()
		checkLog(t, r, "0s starting", "0s starting", "0s ready", "0s draining: host stops", "0s stopped")
	})
}

// TestRecycleThatCannotBeStopped: on a busy machine a kill may take longer than a
// stop may. The next start waits, but that is not counted against the service.
func TestRecycleThatCannotBeStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStop = func(context.Context) error { return errCause }
		r.serve()
		for i := range 3 * failureLimit {
			pause(time.Minute)
			r.Recycle(Any, "too many abandoned calls")
			synctest.Wait()
			if st := r.Status(); st.State != StateBackoff || st.Code != CodeInternal || !errors.Is(st.Last, errCause) {
				t.Fatalf("after %d: %+v", i+1, st)
			}
		}
		if err := r.halt(); err != nil {
			t.Errorf("Serve = %v; the failure has been told already", err)
		}
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.serve()
		if r.Report(7, Failure{Code: "oom"}) {
			t.Error("a report about an incarnation that is not there was taken")
		}
		if !r.Report(1, Failure{Class: ClassMemory, Code: "oom", Detail: "RSS over 256 MiB"}) {
			t.Error("the report was not taken")
		}
		synctest.Wait()
		if r.Report(Any, Failure{}) {
			t.Error("a report was taken in backoff")
		}
		if n := r.service.alive.Load(); n != 0 {
			t.Error("the reported incarnation still runs")
		}
		pause(5 * time.Second)
		r.Report(Any, Failure{})
		synctest.Wait()
		r.mustHalt()
		checkLog(t, r, "0s starting", "0s ready", "0s backoff oom: RSS over 256 MiB (in 5s)",
			"5s starting", "5s ready", "5s backoff internal (in 200ms)", "5s stopped")
	})
}

func TestDegradeAndRestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.serve()
		if r.Degrade(9, "x", "stale") {
			t.Error("a mark for another incarnation was taken")
		}
		r.Degrade(1, "session_reset", "second session")
		synctest.Wait()
		r.Degrade(1, "session_reset", "second session") // nothing new, no event
		synctest.Wait()
		pause(time.Second)
		r.Degrade(1, "session_reset", "third session") // the state stays, the event tells
		synctest.Wait()
		since := r.Status().Since
		pause(time.Second)
		r.Restore(1)
		synctest.Wait()
		r.Degrade(1, "x", "goes with its incarnation")
		r.Recycle(1, "enough")
		synctest.Wait()
		r.mustHalt()
		checkLog(t, r, "0s starting", "0s ready",
			"0s degraded session_reset: second session", "1s degraded session_reset: third session",
			"2s ready", "2s draining: enough", "2s starting", "2s ready", "2s draining: host stops", "2s stopped")
		if !since.Equal(r.begun) {
			t.Errorf("degraded since %v, want the first event's time", since.Sub(r.begun))
		}
	})
}

func TestRelease(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]Class{"quarantine": ClassPermanent, "backoff": ClassMemory} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Options{})
				r.serve()
				if r.Release() {
					t.Error("Release was taken while the service is up")
				}
				r.service.crash(&Failure{Class: class, Code: "x"})
				pause(time.Second)
				if !r.Release() || r.Release() {
					t.Error("want Release taken once")
				}
				synctest.Wait()
				st := r.Status()
				if st.State != StateReady || st.Failures != 0 || st.Last == nil || !st.NextAttempt.IsZero() {
					t.Errorf("status = %+v, want ready, count forgotten, last failure kept", st)
				}
				r.service.crash(nil)
				synctest.Wait()
				if got, want := time.Until(r.Status().NextAttempt), 100*time.Millisecond; got != want {
					t.Errorf("delay after Release = %v, want %v", got, want)
				}
				r.mustHalt()
			})
		})
	}
}
