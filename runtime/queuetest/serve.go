package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/runtime"
)

// patience is how long something may take that is to happen. The machine may do
// much else.
const patience = time.Minute

// attempt is a call of a queue's work.
type attempt struct {
	runtime.Attempt

	at time.Time
}

// server serves a queue in the background of a test.
type server struct {
	mu   sync.Mutex
	seen []attempt
	end  context.CancelCauseFunc
	err  chan error
}

// errEnd ends the service of a test.
var errEnd = errors.New("the test is over")

// serve begins to serve. Verdict says what becomes of an attempt, each of which is
// noted before.
func serve(t *testing.T, q runtime.Queue, verdict func(ctx context.Context, a attempt) runtime.Verdict) *server {
	t.Helper()
	ctx, end := context.WithCancelCause(context.WithoutCancel(t.Context()))
	s := &server{end: end, err: make(chan error, 1)}
	go func() {
		s.err <- q.Serve(ctx, func(ctx context.Context, given runtime.Attempt) runtime.Verdict {
			a := attempt{Attempt: given, at: time.Now()}
			s.mu.Lock()
			s.seen = append(s.seen, a)
			s.mu.Unlock()
			return verdict(ctx, a)
		})
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

// stop ends the service, unless that was done.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.end(errEnd)
	err, first := <-s.err
	if !first {
		return
	}
	close(s.err)
	if !errors.Is(err, errEnd) {
		t.Errorf("Serve = %v, want the cause of its end", err)
	}
}

func (s *server) attempts() []attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// numbers are those of the attempts at a job of a kind, in order.
func (s *server) numbers(kind string) []int {
	var list []int
	for _, a := range s.attempts() {
		if a.Job.Kind == kind {
			list = append(list, a.Number)
		}
	}
	return list
}

// await waits until there were so many attempts, and returns them.
func (s *server) await(t *testing.T, n int) []attempt {
	t.Helper()
	Await(t, fmt.Sprintf("%d attempts", n), func() bool { return len(s.attempts()) >= n })
	return s.attempts()
}

// Await waits for something that a test has no other means to be told of.
func Await(t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("there were never %s", what)
		}
	}
}

func always(v runtime.Verdict) func(context.Context, attempt) runtime.Verdict {
	return func(context.Context, attempt) runtime.Verdict { return v }
}

func done(context.Context, attempt) runtime.Verdict { return runtime.Verdict{Action: runtime.JobDone} }

// idle waits until a queue is.
func idle(t *testing.T, q runtime.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := q.Idle(ctx); err != nil {
		t.Fatalf("Idle: %v", err)
	}
}

func add(t *testing.T, q runtime.Queue, j runtime.Job) {
	t.Helper()
	if err := q.Add(t.Context(), j); err != nil {
		t.Fatalf("Add: %v", err)
	}
}
