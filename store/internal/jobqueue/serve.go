package jobqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
)

const (
	warnAfter  = 10 * time.Second       // until a failure to take jobs is logged again
	pollEvery  = 100 * time.Millisecond // until this process looks for jobs that another one has added
	cleanBatch = 250                    // how many old jobs are removed in one transaction
)

var errServed = errors.New("the queue is being served already, or was")

// service is Serve while it runs.
type service struct {
	*Queue

	work    func(context.Context, jobs.Attempt) jobs.Result
	running sync.WaitGroup
	free    chan struct{} // a token for each idle worker
	warned  time.Time
}

// taken is a job that this process has just got.
type taken struct {
	attempt

	requeued int
	by, body string
}

// Serve implements [jobs.Queue]. It waits for a database that is down. It returns the cause of ctx's end.
func (q *Queue) Serve(ctx context.Context, work func(context.Context, jobs.Attempt) jobs.Result) error {
	if q.served.Swap(true) {
		return errServed
	}
	s := &service{Queue: q, work: work, free: make(chan struct{}, q.opts.Workers)}
	for range q.opts.Workers {
		s.free <- struct{}{}
	}
	renew, poll := time.NewTicker(q.opts.Lease/renewals), time.NewTicker(pollEvery)
	defer renew.Stop()
	defer poll.Stop()
	for q.maintain(ctx); ; {
		s.take(ctx)
		select {
		case <-q.woken:
		case <-poll.C:
		case <-renew.C:
			q.maintain(ctx)
		case <-ctx.Done():
			s.stop(context.WithoutCancel(ctx), renew.C)
			return context.Cause(ctx)
		}
	}
}

// stop waits for running work, and renews its leases until it returns.
func (s *service) stop(ctx context.Context, renew <-chan time.Time) {
	for idle := 0; idle < cap(s.free); {
		select {
		case <-s.free:
			idle++
		case <-renew:
			s.renew(ctx)
		}
	}
	s.running.Wait()
}

// take begins as many due jobs as workers are idle.
func (s *service) take(ctx context.Context) {
	if len(s.free) == 0 || ctx.Err() != nil {
		return
	}
	due, err := true, error(nil)
	if s.db.Kind() == sqldb.SQLite { // a reader looks first: taking needs the only writer
		err = s.db.Fail(ctx, "looking for jobs", s.db.Reader().QueryRowContext(ctx, s.statements.due).Scan(&due))
	}
	var list []taken
	if err == nil && due {
		// If ctx ended on the way, this process would have jobs that it does not know of.
		err = s.db.Join(context.WithoutCancel(ctx), "taking jobs", func(ctx context.Context, tx *sql.Tx) (err error) {
			list, err = sqldb.List(ctx, tx, s.statements.take, []any{s.id, len(s.free)}, func(rows *sql.Rows, t *taken) error {
				return rows.Scan(&t.id, &t.number, &t.requeued, &t.by, &t.body)
			})
			return err
		})
	}
	if err != nil && ctx.Err() == nil && time.Since(s.warned) >= warnAfter {
		s.warned = time.Now()
		s.opts.Logger.Warn("background work cannot be taken; it is retried", "error", err)
	}
	if err != nil {
		return // what is in list was not committed
	}
	for _, t := range list {
		<-s.free
		s.running.Go(func() {
			s.perform(ctx, &t)
			s.free <- struct{}{}
			s.wake()
		})
	}
}

// perform makes one attempt at a job and stores its result.
func (s *service) perform(ctx context.Context, t *taken) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	held := s.leases.hold(t.attempt, cancel)
	defer s.leases.release(held)
	defer func() {
		if p := recover(); p != nil { // there is no result
			s.opts.Logger.Error("background work panicked", "job", t.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if t.by != s.id {
		s.open.Add(1)
	}
	var j jobs.Job
	r := jobs.Result{Action: jobs.Discard}
	if r.Err = json.Unmarshal([]byte(t.body), &j); r.Err == nil && ctx.Err() != nil {
		r = jobs.Result{Action: jobs.Requeue, Err: context.Cause(ctx)} // taken as Serve ended
	} else if r.Err == nil {
		begin := func(ctx context.Context) error { return s.begin(ctx, held.attempt) }
		r = s.work(ctx, jobs.Attempt{Job: j, Number: t.number, Requeued: t.requeued, Shared: true, Begin: begin})
	}
	s.store(ctx, &ending{attempt: held.attempt, job: j, requeued: t.requeued, result: r})
}

// begin records that an attempt must not be repeated.
func (q *Queue) begin(ctx context.Context, a attempt) error {
	n, err := q.change(ctx, "recording the start of a job", q.statements.begin, a.id, a.number, q.id)
	if err == nil && n == 0 {
		return errLeaseLost
	}
	return err
}

// clean removes what ended long ago.
func (q *Queue) clean(ctx context.Context) error {
	for {
		n, err := q.change(ctx, "removing old jobs", q.statements.clean, q.opts.KeepDone.Seconds(), q.opts.KeepDead.Seconds(), cleanBatch)
		if err != nil || n < cleanBatch || ctx.Err() != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
