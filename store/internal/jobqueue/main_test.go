package jobqueue_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

// server is one PostgreSQL for all tests.
var server storetest.Shared

// TestMain also is the programs that other tests start. Most tests wait for leases and
// other processes, so many run at the same time.
func TestMain(m *testing.M) {
	if code, ok := programs().Run(context.Background()); ok {
		os.Exit(code)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(server.Main(m))
}

// on opens the queue of a database.
func on(tb testing.TB, db *sqldb.DB, o jobs.QueueOptions) *jobqueue.Queue {
	tb.Helper()
	q, err := jobqueue.Open(db, o)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// open opens a queue with a connection of its own, as another process would.
func open(tb testing.TB, dsn string, o jobs.QueueOptions) *jobqueue.Queue {
	tb.Helper()
	return on(tb, storetest.Open(tb, dsn, sqldb.Options{}), o)
}

// execute runs a statement past the queue.
func execute(tb testing.TB, dsn, statement string) {
	tb.Helper()
	storetest.Exec(tb, dsn, statement)
}

// serve serves a queue until the test ends, or end is called, which waits for it.
func serve(tb testing.TB, q jobs.Queue, work func(ctx context.Context, j jobs.Job, attempt int) jobs.Result) (end func()) {
	tb.Helper()
	return serveAttempts(tb, q, simple(work))
}

// serveAttempts is serve for work that wants to know all of an attempt.
func serveAttempts(tb testing.TB, q jobs.Queue, work func(context.Context, jobs.Attempt) jobs.Result) (end func()) {
	tb.Helper()
	s := record(tb, q, work)
	return func() { s.stop(tb) }
}

// simple is work that wants to know no more of an attempt than its number.
func simple(work func(ctx context.Context, j jobs.Job, attempt int) jobs.Result) func(context.Context, jobs.Attempt) jobs.Result {
	return func(ctx context.Context, a jobs.Attempt) jobs.Result { return work(ctx, a.Job, a.Number) }
}

func add(tb testing.TB, q jobs.Queue, j jobs.Job) {
	tb.Helper()
	if err := q.Add(tb.Context(), j); err != nil {
		tb.Fatalf("Add: %v", err)
	}
}

// counts are the queue's, but for how old its oldest job is.
func counts(tb testing.TB, q *jobqueue.Queue) jobs.Counts {
	tb.Helper()
	c, err := q.Counts(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if c.OldestSeconds < 0 || c.OldestSeconds > 0 && c.Waiting == 0 {
		tb.Errorf("%+v", c)
	}
	c.OldestSeconds = 0
	return c
}

func wantCode(tb testing.TB, err error, code sqldb.Code) {
	tb.Helper()
	if !sqldb.HasCode(err, code) {
		tb.Errorf("error %v, want the code %s", err, code)
	}
}

func done(context.Context, jobs.Job, int) jobs.Result {
	return jobs.Result{Action: jobs.Done}
}

// patience is for busy machines.
const patience = 5 * time.Minute

type attempt struct {
	jobs.Attempt

	at time.Time
}

// served is what a queue has offered.
type served struct {
	mu   sync.Mutex
	seen []attempt
	end  context.CancelCauseFunc
	err  chan error
}

// errEnd ends the service of a test.
var errEnd = errors.New("the test is over")

// record serves a queue until the test ends, and notes what it offers.
func record(tb testing.TB, q jobs.Queue, work func(context.Context, jobs.Attempt) jobs.Result) *served {
	tb.Helper()
	ctx, end := context.WithCancelCause(context.WithoutCancel(tb.Context()))
	s := &served{end: end, err: make(chan error, 1)}
	go func() {
		s.err <- q.Serve(ctx, func(ctx context.Context, a jobs.Attempt) jobs.Result {
			s.mu.Lock()
			s.seen = append(s.seen, attempt{a, time.Now()})
			s.mu.Unlock()
			return work(ctx, a)
		})
	}()
	tb.Cleanup(func() { s.stop(tb) })
	return s
}

func (s *served) stop(tb testing.TB) {
	tb.Helper()
	s.end(errEnd)
	err, first := <-s.err
	if !first {
		return
	}
	close(s.err)
	if !errors.Is(err, errEnd) {
		tb.Errorf("Serve = %v, want the cause of its end", err)
	}
}

func (s *served) attempts() []attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *served) numbers(kind string) []int {
	var list []int
	for _, a := range s.attempts() {
		if a.Job.Kind == kind {
			list = append(list, a.Number)
		}
	}
	return list
}

func (s *served) await(t *testing.T, n int) []attempt {
	t.Helper()
	await(t, fmt.Sprintf("%d attempts", n), func() bool { return len(s.attempts()) >= n })
	return s.attempts()
}

// await polls for something that has no signal.
func await(t testing.TB, what string, done func() bool) {
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

func idle(t *testing.T, q jobs.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := q.Idle(ctx); err != nil {
		t.Fatalf("Idle: %v", err)
	}
}
