package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/jobs"
)

// patience is for busy machines.
const patience = 5 * time.Minute

type attempt struct {
	jobs.Attempt

	at time.Time
}

type server struct {
	mu   sync.Mutex
	seen []attempt
	end  context.CancelCauseFunc
	err  chan error
}

// errEnd ends the service of a test.
var errEnd = errors.New("the test is over")

func serve(t *testing.T, q jobs.Queue, result func(ctx context.Context, a attempt) jobs.Result) *server {
	t.Helper()
	ctx, end := context.WithCancelCause(context.WithoutCancel(t.Context()))
	s := &server{end: end, err: make(chan error, 1)}
	go func() {
		s.err <- q.Serve(ctx, func(ctx context.Context, given jobs.Attempt) jobs.Result {
			a := attempt{Attempt: given, at: time.Now()}
			s.mu.Lock()
			s.seen = append(s.seen, a)
			s.mu.Unlock()
			return result(ctx, a)
		})
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

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

func (s *server) numbers(kind string) []int {
	var list []int
	for _, a := range s.attempts() {
		if a.Job.Kind == kind {
			list = append(list, a.Number)
		}
	}
	return list
}

func (s *server) await(t *testing.T, n int) []attempt {
	t.Helper()
	Await(t, fmt.Sprintf("%d attempts", n), func() bool { return len(s.attempts()) >= n })
	return s.attempts()
}

// Await polls for something that has no signal.
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

func always(v jobs.Result) func(context.Context, attempt) jobs.Result {
	return func(context.Context, attempt) jobs.Result { return v }
}

func done(context.Context, attempt) jobs.Result { return jobs.Result{Action: jobs.Done} }

func idle(t *testing.T, q jobs.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := q.Idle(ctx); err != nil {
		t.Fatalf("Idle: %v", err)
	}
}

func add(t *testing.T, q jobs.Queue, j jobs.Job) {
	t.Helper()
	if err := q.Add(t.Context(), j); err != nil {
		t.Fatalf("Add: %v", err)
	}
}
