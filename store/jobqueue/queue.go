package jobqueue

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	lostAttempts = 5         // how many more attempts without a result a job may have
	maxAttempts  = 1<<15 - 1 // River's tables count no further
	retryStart   = time.Second
	idlePoll     = 20 * time.Millisecond // another process may have ended a job
	// The first and the longest wait before storing a result is retried.
	firstStore = 100 * time.Millisecond
	maxStore   = 2 * time.Second
	maxReason  = 2000 // bytes of the stored text of a failure
)

var errServed = errors.New("the queue is being served already, or was")

// Queue is a [jobs.Queue] in a database, safe for concurrent use.
//
//  1. [Open] makes it from an open database.
//  2. [Queue.Serve], once, works on jobs until its context ends. Jobs can be added and
//     listed without it.
//  3. [Queue.Close], after Serve has returned and before the database is closed. It is
//     safe to call twice.
//
// Its [Records] list what it holds.
type Queue struct {
	*Records

	opts Options
	flow flow
	// id is this process's name in leases.
	id     string
	worker *worker
	leases leases
	clock  clock
	// open is at least the number of unfinished jobs that this process has added or taken: at
	// zero, Idle need not ask the database.
	open    atomic.Int64
	served  atomic.Bool
	closing sync.Once
}

var (
	_ jobs.Queue   = (*Queue)(nil)
	_ jobs.Counter = (*Queue)(nil)
)

// Open opens the queue of a database and creates missing tables; several programs may do so at
// once. The database must be writable and outlive the queue. The context bounds opening only.
func Open(ctx context.Context, db *sqldb.DB, o Options) (*Queue, error) {
	if db.ReadOnly() {
		return nil, sqldb.Failf(sqldb.CodePermission, "open the store without ReadOnly", "opening the queue: the store was opened for reading")
	}
	o = o.withDefaults(db.Kind())
	if err := o.check(); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	// Unique among processes and queues, and readable for operators.
	id := fmt.Sprintf("%.60s/%d/%s", host, os.Getpid(), rand.Text()[:12])
	q := &Queue{Records: &Records{db: db}, opts: o, id: id, worker: &worker{}, leases: leases{held: map[attempt]*lease{}}}
	if db.Kind() == sqldb.Postgres {
		q.flow, q.statements, err = openPostgres(ctx, db, o, q.id, q.worker)
	} else {
		q.flow, q.statements, err = openSQLite(ctx, db, o, q.id, q.worker)
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Retry is [Records.Retry], after which this process fetches the jobs at once.
func (q *Queue) Retry(ctx context.Context, ids ...int64) ([]int64, error) {
	retried, err := q.Records.Retry(ctx, ids...)
	if len(retried) > 0 {
		q.flow.wake()
	}
	return retried, err
}

// Close ends the queue's connections.
func (q *Queue) Close() error {
	q.closed.Store(true)
	q.closing.Do(q.flow.close)
	return nil
}

// Add implements [jobs.Queue], served or not.
func (q *Queue) Add(ctx context.Context, j jobs.Job) error {
	if err := q.checkOpen(); err != nil {
		return err
	}
	body, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("a background job: %w", err)
	}
	args := &jobArgs{Key: j.Key(), Job: string(body)}
	opts := &river.InsertOpts{
		Queue: queueName, Metadata: []byte(encode(jobMeta{Plugin: j.Plugin, By: q.id})),
		MaxAttempts: min(max(j.Attempts, 1), maxAttempts-lostAttempts) + lostAttempts,
	}
	if time.Until(j.NotBefore) > 0 {
		opts.ScheduledAt = j.NotBefore
	}
	if args.Key != "" {
		opts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: rivertype.JobStates()}
	}
	q.open.Add(1) // before a worker may finish it
	duplicate, err := q.flow.insert(ctx, args, opts, j.Plugin)
	if err == nil && !duplicate {
		q.flow.wake()
		return nil
	}
	q.open.Add(-1)
	if err == nil {
		return jobs.ErrDuplicate
	}
	if refused, ok := errors.AsType[*phases.Error](err); ok {
		return refused
	}
	return q.db.Fail(ctx, "queueing a job", err)
}

// Serve implements [jobs.Queue]. It waits for a database that is down. It returns the cause of ctx's end.
func (q *Queue) Serve(ctx context.Context, work func(context.Context, jobs.Attempt) jobs.Result) error {
	if err := q.checkOpen(); err != nil {
		return err
	}
	if q.served.Swap(true) {
		return errServed
	}
	q.worker.perform = func(rctx context.Context, row *rivertype.JobRow, body string) {
		// River's context, but it ends with ours and its cause.
		rctx, cancel := context.WithCancelCause(rctx)
		defer cancel(nil)
		stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		defer stop()
		q.perform(rctx, cancel, row, body, work)
	}
	for {
		err := q.flow.start(context.WithoutCancel(ctx))
		if err == nil {
			break
		}
		q.opts.Logger.Warn("background work cannot start; it is retried", "error", q.db.Fail(ctx, "starting the queue", err))
		if !sleep(ctx, retryStart) {
			return context.Cause(ctx)
		}
	}
	ticker := time.NewTicker(q.opts.Lease / renewals)
	defer ticker.Stop()
	for q.maintain(ctx); ; {
		select {
		case <-ticker.C:
			q.maintain(ctx)
		case <-ctx.Done():
			q.stop(context.WithoutCancel(ctx))
			return context.Cause(ctx)
		}
	}
}

// stop stops River, and renews the leases of running work until it returns.
func (q *Queue) stop(ctx context.Context) {
	for {
		bounded, cancel := context.WithTimeout(ctx, q.opts.Lease/renewals)
		err := q.flow.stop(bounded)
		cancel()
		if err == nil {
			return
		}
		q.renew(ctx)
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

// perform makes one attempt at a job and stores its result. Cancel ends ctx.
func (q *Queue) perform(ctx context.Context, cancel context.CancelCauseFunc, row *rivertype.JobRow, body string,
	work func(context.Context, jobs.Attempt) jobs.Result,
) {
	held := q.leases.hold(attempt{id: row.ID, number: row.Attempt}, cancel)
	defer q.leases.release(held) // also if work panics, which River reports: there is no result
	var meta jobMeta
	_ = json.Unmarshal(row.Metadata, &meta) // unreadable metadata counts as none
	if meta.By != q.id {
		q.open.Add(1)
	}
	var j jobs.Job
	r := jobs.Result{Action: jobs.Discard}
	if r.Err = json.Unmarshal([]byte(body), &j); r.Err == nil && ctx.Err() != nil {
		r = jobs.Result{Action: jobs.Requeue, Err: context.Cause(ctx)} // fetched as Serve ended
	} else if r.Err == nil {
		begin := func(ctx context.Context) error { return q.begin(ctx, held.attempt) }
		r = work(ctx, jobs.Attempt{Job: j, Number: row.Attempt, Requeued: meta.Requeued, Shared: true, Begin: begin})
	}
	q.store(ctx, &ending{attempt: held.attempt, job: j, requeued: meta.Requeued, result: r})
}

// begin records that an attempt must not be repeated.
func (q *Queue) begin(ctx context.Context, a attempt) error {
	n, err := q.change(ctx, "recording the start of a job", q.statements.begin, a.id, a.number, q.id, fmt.Sprintf(`{"begun":%d}`, a.number))
	if err == nil && n == 0 {
		return errLeaseLost
	}
	return err
}

func (q *Queue) change(ctx context.Context, doing, statement string, args ...any) (n int64, err error) {
	err = q.db.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

type ending struct {
	attempt

	job      jobs.Job
	requeued int
	result   jobs.Result
}

// store retries until the result is stored, the lease is lost, or Serve ends; without a stored
// result the attempt is repeated.
func (q *Queue) store(ctx context.Context, e *ending) {
	log := q.opts.Logger.With("job", e.id, "plugin", e.job.Plugin, "attempt", e.number, "result", e.result.Action)
	statement, args := q.storing(e)
	for wait := firstStore; ; wait = min(2*wait, maxStore) {
		n, err := q.change(context.WithoutCancel(ctx), "storing the result of a job", statement, args...)
		switch {
		case err == nil && n == 0:
			log.Warn("a job was taken by another process before its attempt ended")
			return
		case err == nil:
			if e.result.Action == jobs.Done || e.result.Action == jobs.Discard {
				q.open.Add(-1)
			}
			return
		}
		log.Warn("the result of a job cannot be stored", "error", err)
		if ctx.Err() != nil {
			return
		}
		sleep(ctx, wait) // one more try when ctx ends
	}
}

func (q *Queue) storing(e *ending) (statement string, args []any) {
	args = []any{e.id, e.number, q.id}
	switch e.result.Action {
	case jobs.Done:
		return q.statements.done, args
	case jobs.Discard:
		return q.statements.discard, append(args, e.failure())
	case jobs.Requeue:
		note := encode(jobMeta{Requeued: e.requeued + 1, Why: reason(e.result.Err)})
		return q.statements.requeue, append(args, seconds(jobs.RequeueWait(e.requeued+1, q.opts.Random)), note)
	default:
		return q.statements.retry, append(args, seconds(e.job.RetryWait(e.number, q.opts.Random)), e.failure())
	}
}

func (e *ending) failure() string {
	err := e.result.Err
	return encode(attemptError{rivertype.AttemptError{At: time.Now().UTC(), Attempt: e.number, Error: reason(err)}, phases.CodeOf(err)})
}

// reason is an error's text, bounded and without NUL.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

func encode(v any) string {
	text, _ := json.Marshal(v) //nolint:errchkjson // our types always encode
	return string(text)
}

// Idle implements [jobs.Queue]. A job that this process has added counts while it runs, wherever that is.
func (q *Queue) Idle(ctx context.Context) error {
	for q.open.Load() > 0 {
		var busy bool
		if err := q.db.Reader().QueryRowContext(ctx, q.statements.busy, q.id).Scan(&busy); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return q.db.Fail(ctx, "looking for jobs", err)
		}
		if !busy {
			return nil
		}
		if !sleep(ctx, idlePoll) {
			return context.Cause(ctx)
		}
	}
	return nil
}
