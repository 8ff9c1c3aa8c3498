package jobqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/engine/memqueue"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
)

// TestQueues has the queue of an engine without a store, too.
func TestQueues(t *testing.T) {
	t.Parallel()

	t.Run("memory", func(t *testing.T) {
		t.Parallel()

		testQueue(t, func(*testing.T) jobs.Queue { return memqueue.New(rand.Float64, func(jobs.Job, error) {}) })
	})
	for name, newDSN := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": server.NewDSN} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if name == "postgres" {
				server.Postgres(t)
			}
			testQueue(t, func(t *testing.T) jobs.Queue {
				t.Helper()
				return open(t, newDSN(t), jobs.QueueOptions{})
			})
		})
	}
}

const (
	waiting   = 1024
	perPlugin = 256
)

// testQueue has what every queue must pass. Open makes an empty one with the default bounds, closed with the test.
func testQueue(t *testing.T, open func(t *testing.T) jobs.Queue) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, q jobs.Queue){
		"offers":   testOffers,
		"attempts": testAttempts,
		"results":  testResults,
		"times":    testTimes,
		"keys":     testKeys,
		"bounds":   testBounds,
		"at once":  testAtOnce,
		"end":      testEnd,
		"idle":     testIdle,
		"no time":  testAddWithoutTime,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			test(t, open(t))
		})
	}
}

func full() jobs.Job {
	return jobs.Job{
		Kind: "k", Plugin: "p", Subscription: "p.s", Phase: phases.PostTurn,
		Context:        phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent},
		Payload:        json.RawMessage(`{"z":1,"a":[1e400,12345678901234567890.5],"nul":"\u0000","text":"ä\n"}`),
		Policies:       []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage(`"v"`), Owner: "p.s"}},
		IdempotencyKey: "once", Attempts: 3, Backoff: time.Second,
	}
}

func testOffers(t *testing.T, q jobs.Queue) {
	want := full()
	add(t, q, want)
	s := record(t, q, simple(done))
	add(t, q, jobs.Job{Plugin: "p", Subscription: "p.s"})
	idle(t, q)
	got := s.await(t, 2)
	slices.SortFunc(got, func(a, b attempt) int { return len(b.Job.Kind) - len(a.Job.Kind) })
	if diff := cmp.Diff(got[0].Job, want); diff != "" {
		t.Errorf("job (-got +want):\n%s", diff)
	}
	if got[0].Number != 1 || got[1].Number != 1 {
		t.Errorf("attempts %d and %d, want the first", got[0].Number, got[1].Number)
	}
	if n := len(s.attempts()); n != 2 {
		t.Errorf("%d attempts at 2 jobs", n)
	}
}

func testAttempts(t *testing.T, q jobs.Queue) {
	const first = 200 * time.Millisecond
	add(t, q, jobs.Job{Kind: "k", Plugin: "p", Attempts: 9, Backoff: first})
	s := record(t, q, func(_ context.Context, a jobs.Attempt) jobs.Result {
		if a.Number < 3 {
			return jobs.Result{Action: jobs.Retry, Err: errors.New("not now")}
		}
		return jobs.Result{Action: jobs.Done}
	})
	seen := s.await(t, 3)
	idle(t, q)
	if diff := cmp.Diff(s.numbers("k"), []int{1, 2, 3}); diff != "" {
		t.Errorf("attempts (-got +want):\n%s", diff)
	}
	for n, least := range []time.Duration{first / 2, first} { // half of it is jitter
		if wait := seen[n+1].at.Sub(seen[n].at); wait < least {
			t.Errorf("wait %d was %s, want %s at least", n, wait, least)
		}
	}
}

func testResults(t *testing.T, q jobs.Queue) {
	s := record(t, q, func(_ context.Context, a jobs.Attempt) jobs.Result {
		because := errors.New("because\x00 of \xff")
		switch {
		case a.Job.Kind == "dead":
			return jobs.Result{Action: jobs.Discard, Err: because}
		case a.Job.Kind == "unknown" && a.Number == 1:
			return jobs.Result{Action: "something new", Err: because}
		case a.Job.Kind == "requeued":
			return jobs.Result{Action: jobs.Requeue, Err: because}
		}
		return jobs.Result{Action: jobs.Done}
	})
	for _, kind := range []string{"dead", "unknown", "requeued"} {
		add(t, q, jobs.Job{Kind: kind, Plugin: "p", Attempts: 2})
	}
	await(t, "three requeues", func() bool { return len(s.numbers("requeued")) >= 3 })
	if diff := cmp.Diff(s.numbers("requeued")[:3], []int{1, 1, 1}); diff != "" {
		t.Errorf("requeueing is not an attempt (-got +want):\n%s", diff)
	}
	var times []int
	for _, a := range s.attempts() {
		if a.Job.Kind == "requeued" {
			times = append(times, a.Requeued)
		}
	}
	if diff := cmp.Diff(times[:3], []int{0, 1, 2}); diff != "" {
		t.Errorf("earlier requeues (-got +want):\n%s", diff)
	}
	await(t, "a second attempt", func() bool { return len(s.numbers("unknown")) >= 2 })
	s.stop(t)
	if diff := cmp.Diff(s.numbers("unknown"), []int{1, 2}); diff != "" {
		t.Errorf("an unknown result (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(s.numbers("dead"), []int{1}); diff != "" {
		t.Errorf("a dead job (-got +want):\n%s", diff)
	}
}

func testTimes(t *testing.T, q jobs.Queue) {
	s := record(t, q, simple(done))
	const wait = 300 * time.Millisecond
	due := time.Now().Add(wait)
	add(t, q, jobs.Job{Kind: "later", Plugin: "p", NotBefore: due})
	add(t, q, jobs.Job{Kind: "past", Plugin: "p", NotBefore: time.Now().Add(-time.Hour)})
	add(t, q, jobs.Job{Kind: "never", Plugin: "p", NotBefore: time.Now().Add(24 * time.Hour)})
	for _, a := range s.await(t, 2) {
		// Databases know milliseconds.
		if a.Job.Kind == "later" && a.at.Before(due.Add(-5*time.Millisecond)) {
			t.Errorf("%s too early", due.Sub(a.at))
		}
	}
	idle(t, q)
	if n := s.numbers("never"); n != nil {
		t.Errorf("the job of tomorrow was offered: %v", n)
	}
}

func testKeys(t *testing.T, q jobs.Queue) {
	keyed := func(workspace, plugin, kind, key string) jobs.Job {
		return jobs.Job{Context: phases.Context{WorkspaceID: workspace}, Plugin: plugin, Kind: kind, IdempotencyKey: key}
	}
	first := keyed("w", "p", "k", "once")
	add(t, q, first)
	again := func(when string) {
		t.Helper()
		if err := q.Add(t.Context(), first); !errors.Is(err, jobs.ErrDuplicate) {
			t.Errorf("a second one %s: %v", when, err)
		}
	}
	again("while the first waits")
	add(t, q, keyed("v", "p", "k", "once"))
	add(t, q, keyed("w", "q", "k", "once"))
	add(t, q, keyed("w", "p", "l", "once"))
	add(t, q, keyed("w", "p", "k", "twice"))
	add(t, q, keyed("w", "p", "k", ""))
	add(t, q, keyed("w", "p", "k", ""))
	var running sync.Once
	s := record(t, q, func(context.Context, jobs.Attempt) jobs.Result {
		running.Do(func() { again("while it may run") })
		return jobs.Result{Action: jobs.Done}
	})
	s.await(t, 7)
	idle(t, q)
	again("when the first is done")
	if n := len(s.attempts()); n != 7 {
		t.Errorf("%d attempts, want 7", n)
	}
}

func testBounds(t *testing.T, q jobs.Queue) {
	tomorrow := time.Now().Add(24 * time.Hour)
	var mu sync.Mutex
	taken := map[string]int{}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for n := range 5 * (perPlugin + 16) / 16 {
				plugin := fmt.Sprint("p", n%5)
				err := q.Add(t.Context(), jobs.Job{Plugin: plugin, NotBefore: tomorrow})
				if err != nil && phases.CodeOf(err) != phases.CauseOverloaded {
					t.Errorf("Add: %v", err)
				}
				mu.Lock()
				if err == nil {
					taken[plugin]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	total := 0
	for plugin, n := range taken {
		if total += n; n > perPlugin {
			t.Errorf("%d of %s are waiting", n, plugin)
		}
	}
	if total != waiting {
		t.Errorf("%d jobs are waiting, want %d", total, waiting)
	}
	if err := q.Add(t.Context(), jobs.Job{Plugin: "new"}); phases.CodeOf(err) != phases.CauseOverloaded {
		t.Errorf("one more: %v", err)
	}
}

func testAtOnce(t *testing.T, q jobs.Queue) {
	const count = 60
	meet := make(chan struct{})
	s := record(t, q, func(ctx context.Context, a jobs.Attempt) jobs.Result {
		if a.Job.Kind == "pair" {
			select {
			case meet <- struct{}{}:
			case <-meet:
			case <-ctx.Done():
			}
		}
		return jobs.Result{Action: jobs.Done}
	})
	add(t, q, jobs.Job{Kind: "pair", Plugin: "p"})
	add(t, q, jobs.Job{Kind: "pair", Plugin: "p"})
	for n := range count {
		add(t, q, jobs.Job{Kind: strconv.Itoa(n), Plugin: "p"})
	}
	s.await(t, count+2)
	idle(t, q)
	for n := range count {
		if diff := cmp.Diff(s.numbers(strconv.Itoa(n)), []int{1}); diff != "" {
			t.Errorf("job %d (-got +want):\n%s", n, diff)
		}
	}
}

func testEnd(t *testing.T, q jobs.Queue) {
	begun, cause, returned := make(chan struct{}), make(chan error, 1), make(chan struct{})
	s := record(t, q, func(ctx context.Context, _ jobs.Attempt) jobs.Result {
		close(begun)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		<-returned
		return jobs.Result{Action: jobs.Requeue, Err: context.Cause(ctx)}
	})
	add(t, q, jobs.Job{Plugin: "p"})
	<-begun
	s.end(errEnd)
	if err := <-cause; !errors.Is(err, errEnd) {
		t.Errorf("the work was cancelled with %v", err)
	}
	add(t, q, jobs.Job{Plugin: "p", NotBefore: time.Now().Add(time.Hour)}) // it does not begin
	select {
	case err := <-s.err:
		t.Fatalf("Serve returned before its work, with %v", err)
	default:
	}
	close(returned)
	s.stop(t)
	if n := len(s.attempts()); n != 1 {
		t.Errorf("%d attempts", n)
	}
}

func testIdle(t *testing.T, q jobs.Queue) {
	idle(t, q) // empty
	add(t, q, jobs.Job{Kind: "later", Plugin: "p", NotBefore: time.Now().Add(time.Hour)})
	idle(t, q)
	add(t, q, jobs.Job{Kind: "now", Plugin: "p", Attempts: 2, Backoff: time.Hour})
	busy := func(what string) {
		t.Helper()
		why := errors.New("no more time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, why)
		defer cancel()
		if err := q.Idle(ctx); !errors.Is(err, why) {
			t.Errorf("Idle while a job %s: %v", what, err)
		}
	}
	busy("is due")
	begun, end := make(chan struct{}), make(chan struct{})
	record(t, q, func(context.Context, jobs.Attempt) jobs.Result {
		close(begun)
		<-end
		return jobs.Result{Action: jobs.Retry, Err: errors.New("later")}
	})
	<-begun
	busy("runs")
	close(end)
	idle(t, q) // the next attempt is far away
}

func testAddWithoutTime(t *testing.T, q jobs.Queue) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Add(ctx, jobs.Job{Plugin: "p"}); err == nil {
		t.Skip("it does not wait, and takes the job")
	}
	s := record(t, q, simple(done))
	add(t, q, jobs.Job{Kind: "after", Plugin: "p"})
	s.await(t, 1)
	idle(t, q)
	if diff := cmp.Diff(s.numbers(""), []int(nil)); diff != "" {
		t.Errorf("the refused job (-got +want):\n%s", diff)
	}
}
