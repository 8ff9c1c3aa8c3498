package jobqueue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

const (
	// lostAttempts is how many attempts a job may have beyond its own that ended
	// without a verdict.
	lostAttempts = 5
	// maxAttempts is what River's tables can count.
	maxAttempts = 1<<15 - 1
	// startAgain is how long Serve waits for a database that is away.
	startAgain = time.Second
)

// errServed refuses a second Serve.
var errServed = errors.New("the queue is being served already, or was")

// Queue is a [runtime.Queue] in a database.
//
//  1. [Open] makes it, of an open database.
//  2. [Queue.Serve], once, works on jobs until its context ends; an engine does
//     that. A queue that nobody serves can be added to and looked at.
//  3. [Queue.Close], when Serve has returned and before the database is closed. It
//     is safe to call it twice.
//
// It is safe for concurrent use.
//
// What it holds is in its [Records].
type Queue struct {
	*Records

	opts Options
	flow flow
	// id is this process's name in leases.
	id     string
	worker *worker
	leases leases
	// clock is for the one who tends.
	clock clock
	known known
	// served says that Serve was called.
	served, closed atomic.Bool
	closing        sync.Once
}

var (
	_ runtime.Queue        = (*Queue)(nil)
	_ runtime.QueueCounter = (*Queue)(nil)
)

// Open makes the queue of a database, and its tables where they are missing, which
// several programs may do at the same time. The database has to be open for writing
// and to outlive the queue. The context bounds opening only.
func Open(ctx context.Context, db *sqldb.DB, o Options) (*Queue, error) {
	if db.ReadOnly() {
		return nil, sqldb.Failf(sqldb.CodePermission, "open the store without ReadOnly", "opening the queue: the store was opened for reading")
	}
	o = o.withDefaults(db.Kind())
	if err := o.check(); err != nil {
		return nil, err
	}
	q := &Queue{Records: &Records{db: db}, opts: o, id: processName(), worker: &worker{}}
	q.refuse = q.checkOpen
	var err error
	if db.Kind() == sqldb.Postgres {
		q.flow, q.phrases, err = openPostgres(ctx, db, o, q.id, q.worker)
	} else {
		q.flow, q.phrases, err = openSQLite(ctx, db, o, q.id, q.worker)
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// processName is a name that no other process has, nor another queue of this one,
// and that tells an operator where to look.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%.60s/%d/%s", host, os.Getpid(), rand.Text()[:12])
}

// Retry is [Records.Retry], after which this process looks for the jobs at once.
func (q *Queue) Retry(ctx context.Context, ids ...int64) ([]int64, error) {
	retried, err := q.Records.Retry(ctx, ids...)
	if len(retried) > 0 {
		q.flow.wake()
	}
	return retried, err
}

// Close ends the queue's connections. Serve has to have returned.
func (q *Queue) Close() error {
	q.closed.Store(true)
	q.closing.Do(q.flow.close)
	return nil
}

// checkOpen refuses calls after Close.
func (q *Queue) checkOpen() error {
	if q.closed.Load() {
		return phases.Errorf(phases.CauseUnavailable, "the queue of background work is closed")
	}
	return nil
}

// Add implements [runtime.Queue]. It does not matter whether anybody serves.
func (q *Queue) Add(ctx context.Context, j runtime.Job) error {
	if err := q.checkOpen(); err != nil {
		return err
	}
	body, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("a background job: %w", err)
	}
	meta, err := json.Marshal(jobMeta{Plugin: j.Plugin})
	if err != nil {
		return fmt.Errorf("a background job: %w", err)
	}
	args := &jobArgs{Key: j.Key(), Job: string(body)}
	attempts := min(max(j.Attempts, 1), maxAttempts-lostAttempts) + lostAttempts
	id, duplicate, err := q.flow.insert(ctx, args, insertion(args, meta, attempts, j.NotBefore), j.Plugin)
	var refused *phases.Error
	switch {
	case errors.As(err, &refused):
		return refused
	case err != nil:
		return q.db.Fail(ctx, "queueing a job", err)
	case duplicate:
		return runtime.ErrDuplicateJob
	}
	if q.known.add(id) {
		q.forgetOthers(ctx)
	}
	q.flow.wake()
	return nil
}

// Serve implements [runtime.Queue]. Where the database is away as it begins, it
// waits for it. It returns the cause of ctx's end.
func (q *Queue) Serve(ctx context.Context, work func(context.Context, runtime.Attempt) runtime.Verdict) error {
	if err := q.checkOpen(); err != nil {
		return err
	}
	if q.served.Swap(true) {
		return errServed
	}
	q.worker.perform = func(rctx context.Context, row *rivertype.JobRow, body string) {
		// River's context is ours, but for the end: that has our cause.
		rctx, cancel := context.WithCancelCause(rctx)
		defer cancel(nil)
		stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		defer stop()
		q.perform(rctx, cancel, row, body, work)
	}
	if !q.start(ctx) {
		return context.Cause(ctx)
	}
	ticker := time.NewTicker(q.opts.Lease / renewals)
	defer ticker.Stop()
	for q.tend(ctx); ; {
		select {
		case <-ticker.C:
			q.tend(ctx)
		case <-ctx.Done():
			q.stop(ctx)
			return context.Cause(ctx)
		}
	}
}

// start starts River. It reports false where ctx ended first.
func (q *Queue) start(ctx context.Context) bool {
	for {
		err := q.flow.start(context.WithoutCancel(ctx))
		if err == nil {
			return true
		}
		q.opts.Logger.Warn("background work cannot begin; it is tried again", "error", q.db.Fail(ctx, "starting the queue", err))
		timer := time.NewTimer(startAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// stop ends River, and keeps the leases of work that had begun until it returns.
func (q *Queue) stop(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
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
