package supervise

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// replacing is a rig whose service may run twice, and takes a second to start, to
// drain and to stop.
func replacing(t *testing.T, o Options) *rig {
	t.Helper()
	r := newRig(t, o)
	second := func(context.Context) { <-time.After(time.Second) }
	r.service.beside = 1
	r.service.onStart = func(ctx context.Context, _ uint64) error { second(ctx); return nil }
	r.service.onDrain = second
	r.service.onStop = func(ctx context.Context) error { second(ctx); return nil }
	return r
}

// TestReplace: the service is up all the time, and the one that was replaced is
// stopped only when it has drained.
func TestReplace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var drained, stopped time.Duration
		r := replacing(t, Options{})
		begun := time.Now()
		r.service.onDrain = func(context.Context) { time.Sleep(time.Minute / 2); drained = time.Since(begun) }
		r.service.onStop = func(context.Context) error { stopped = time.Since(begun); return nil }
		r.serve()
		if r.Replace(1, "too early") {
			pause(time.Second)
		} else {
			t.Error("a service that starts cannot be named")
		}
		pause(2 * time.Second)
		if st := r.Status(); st.State != StateReady || st.Incarnation != 2 || st.Recycled != 1 || st.Restarts != 0 || st.Failures != 0 {
			t.Errorf("status = %+v, want the second incarnation, ready", st)
		}
		if r.Replace(1, "stale") {
			t.Error("an order for an incarnation that was replaced was taken")
		}
		if n := r.service.alive.Load(); n != 2 {
			t.Errorf("%d alive, want two: one drains", n)
		}
		pause(time.Minute)
		if want := 32 * time.Second; drained != want || stopped != want {
			t.Errorf("drained after %v, stopped after %v, want %v", drained, stopped, want)
		}
		r.mustHalt()
		checkLog(t, r, "0s starting", "1s ready", "2s ready 2, replaced: too early", "1m3s draining: host stops", "1m3s stopped")
	})
}

// TestReplaceByAge replaces again and again, a fifth earlier at most, and never
// touches what counts as failure or as healthy.
func TestReplaceByAge(t *testing.T) {
	t.Parallel()
	for draw, want := range map[float64]string{0: "1m1s", 1: "49s"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := replacing(t, Options{
					Replacement: Replacement{Age: time.Minute},
					Random:      func() float64 { return draw },
				})
				r.serve()
				pause(10 * time.Minute)
				if st := r.Status(); st.Recycled < 9 || st.Restarts != 0 || st.Last != nil || int(st.Incarnation) != st.Recycled+1 {
					t.Errorf("status = %+v", st)
				}
				r.service.crash(nil)
				synctest.Wait()
				if got := time.Until(r.Status().NextAttempt); got != jittered(minBackoff, draw) {
					t.Errorf("delay = %v, want that of a first failure", got)
				}
				r.mustHalt()
				d, err := time.ParseDuration(want)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := r.log()[2], (d+time.Second).String()+" ready 2, replaced: it ran for 1m0s"; got != want {
					t.Errorf("third event %q, want %q", got, want)
				}
			})
		})
	}
}

// TestReplaceThatFails keeps the one that runs, says so once, and tries again ever
// later; what succeeds in the end clears that.
func TestReplaceThatFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		class  Class
		starts []time.Duration // after the order
	}{
		{"ordinary", ClassOrdinary, []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second}},
		{"permanent", ClassPermanent, []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := replacing(t, Options{})
				var starts []time.Duration
				r.service.onStart = func(_ context.Context, incarnation uint64) error {
					if incarnation > 1 {
						starts = append(starts, time.Since(r.begun))
					}
					if incarnation == 1 || incarnation > 4 {
						return nil
					}
					return &Failure{Class: tt.class, Code: "exec_failed", Detail: "attempt " + strconv.FormatUint(incarnation, 10)}
				}
				r.serve()
				r.Replace(1, "age")
				r.Replace(1, "asked again")
				synctest.Wait()
				stuck := r.Status()
				if stuck.State != StateDegraded || stuck.Incarnation != 1 || stuck.Failures != 0 || stuck.Restarts != 0 {
					t.Errorf("status = %+v, want the first incarnation, degraded", stuck)
				}
				pause(tt.starts[3])
				if len(starts) != 4 || starts[1] != tt.starts[1] || starts[2] != tt.starts[2] || starts[3] != tt.starts[3] {
					t.Errorf("starts at %v, want %v", starts, tt.starts)
				}
				if st := r.Status(); st.State != StateReady || st.Incarnation != 5 || st.Recycled != 1 || st.Restarts != 0 {
					t.Errorf("status = %+v, want the fifth start, ready", st)
				}
				r.mustHalt()
				if got, want := r.log()[2], "0s degraded exec_failed: to be replaced (age), and its successor did not come up: attempt 2"; got != want || len(r.log()) != 6 {
					t.Errorf("events %q, want one %q", r.log(), want)
				}
			})
		})
	}
}

// TestReplaceDeadSuccessor: one that ends before it can take over does not.
func TestReplaceDeadSuccessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := replacing(t, Options{})
		r.service.stillborn = true
		r.serve()
		pause(time.Second)
		r.Replace(Any, "age")
		pause(3 * time.Second)
		if st := r.Status(); st.State != StateDegraded || st.Incarnation != 1 || st.Code != CodeCrash {
			t.Errorf("status = %+v, want the first incarnation, degraded", st)
		}
		r.mustHalt()
	})
}

// TestReplaceAlone stops a service first of which no two may run.
func TestReplaceAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := replacing(t, Options{Replacement: Replacement{Age: time.Minute, Alone: true}})
		r.service.beside = 0
		r.serve()
		pause(64 * time.Second)
		r.mustHalt()
		checkLog(t, r, "0s starting", "1s ready", "1m1s draining: it ran for 1m0s", "1m2s starting", "1m3s ready",
			"1m4s draining: host stops", "1m5s stopped")
	})
}

// TestReplacedEnds is what else may happen while a successor is on its way, or the
// one before drains.
func TestReplacedEnds(t *testing.T) {
	t.Parallel()
	const starts, drains = 500 * time.Millisecond, 1500 * time.Millisecond
	crash := func(r *rig) { r.service.crash(nil) }
	expel := func(r *rig) {
		if err := r.Expel(context.Background()); err != nil || r.service.alive.Load() != 1 {
			r.t.Errorf("Expel = %v, %d alive", err, r.service.alive.Load())
		}
	}
	const replaced, crashed = "2s ready 2, replaced: age", "backoff crash: ended without being asked to (in 100ms)"
	for _, tt := range []struct {
		name string
		at   time.Duration // after the order
		do   func(r *rig)
		left int32    // how many are alive after that
		want []string // events after the order, up to 5 s
	}{
		{"the old one crashes during the start", starts, crash, 1, []string{"1.5s " + crashed, "2.5s starting", "3.5s ready"}},
		{"it is recycled during the start", starts, func(r *rig) { r.Recycle(Any, "parked") }, 1, []string{"1.5s draining: parked", "2.5s starting", "3.5s ready"}},
		{"the host stops during the start", starts, (*rig).mustHalt, 0, []string{"1.5s draining: host stops", "2.5s stopped"}},
		{"the successor crashes while the old one drains", drains, crash, 2, []string{replaced, "2.5s " + crashed, "3.5s starting", "4.5s ready"}},
		{"the host stops while the old one drains", drains, (*rig).mustHalt, 0, []string{replaced, "2.5s draining: host stops", "3.5s stopped"}},
		{"the drain is cut short", drains, expel, 1, []string{replaced}},
		{"it is replaced again", drains, func(r *rig) { r.Replace(Any, "once more") }, 2, []string{replaced}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := replacing(t, Options{})
				r.service.onStart = func(ctx context.Context, _ uint64) error {
					select {
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-time.After(time.Second):
						return nil
					}
				}
				r.service.onDrain = func(ctx context.Context) {
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
				}
				r.serve()
				pause(time.Second)
				r.Replace(1, "age")
				pause(tt.at)
				tt.do(r)
				pause(4*time.Second - tt.at)
				if got := r.service.alive.Load(); got != tt.left {
					t.Errorf("%d alive, want %d", got, tt.left)
				}
				log := r.log()
				if r.Status().State != StateStopped {
					r.mustHalt()
				}
				if got, want := log[2:], tt.want; !slices.Equal(got, want) {
					t.Errorf("events %q, want %q", got, want)
				}
			})
		})
	}
}

// TestReplaceHealth: from the moment in which it is replaced nobody asks the old one
// how it is.
func TestReplaceHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		r := replacing(t, Options{Health: Health{Interval: 10 * time.Second, Check: func(context.Context) error { checks++; return nil }}})
		r.service.onDrain = func(ctx context.Context) { <-ctx.Done() }
		r.serve()
		pause(time.Second)
		r.Replace(Any, "age")
		pause(time.Second + 30*time.Second)
		if checks != 3 {
			t.Errorf("%d checks in 30 s, want 3", checks)
		}
		r.mustHalt()
	})
}

// TestHurry cuts the drain of what was replaced short, and touches nothing else.
func TestHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := replacing(t, Options{Replacement: Replacement{Drain: time.Hour}})
		r.service.onDrain = func(ctx context.Context) { <-ctx.Done() }
		if r.Hurry(1) {
			t.Error("something drains before the start")
		}
		r.serve()
		pause(time.Second)
		r.Replace(Any, "age")
		pause(time.Second)
		if r.Hurry(2) || r.service.alive.Load() != 2 {
			t.Error("the one in force was hurried")
		}
		if !r.Hurry(1) {
			t.Error("nothing drains")
		}
		pause(2 * time.Second)
		if n := r.service.alive.Load(); n != 1 || r.Hurry(1) || r.Status().Incarnation != 2 {
			t.Errorf("%d alive, status %+v", n, r.Status())
		}
		r.mustHalt()
	})
}
