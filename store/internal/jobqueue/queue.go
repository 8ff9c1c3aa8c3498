package jobqueue

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	lostAttempts = 5                     // how many more attempts without a result a job may have
	idlePoll     = 20 * time.Millisecond // another process may have ended a job
	// The first and the longest wait before storing a result is retried.
	firstStore = 100 * time.Millisecond
	maxStore   = 2 * time.Second
	maxReason  = 2000 // bytes of the stored text of a failure
)

// Queue is a [jobs.Queue] in a database, safe for concurrent use.
//
//  1. [Open] makes it from an open database.
//  2. [Queue.Serve], once, works on jobs until its context ends. Jobs can be added and
//     listed without it.
//
// Its [Records] list what it holds.
type Queue struct {
	*Records

	opts options
	// id is this process's name in leases.
	id     string
	leases leases
	clock  clock
	woken  chan struct{} // that there may be due jobs, or a free worker
	// open is at least the number of unfinished jobs that this process has added or taken: at
	// zero, Idle need not ask the database.
	open   atomic.Int64
	served atomic.Bool
}

var (
	_ jobs.Queue   = (*Queue)(nil)
	_ jobs.Records = (*Queue)(nil)
)

// Open opens the queue of a database with the store's schema, which must be writable and outlive the queue.
func Open(db *sqldb.DB, o jobs.QueueOptions) (*Queue, error) {
	if db.ReadOnly() {
		return nil, sqldb.Failf(sqldb.CodePermission, "open the store without ReadOnly", "opening the queue: the store was opened for reading")
	}
	if db.Closed() {
		return nil, errClosed()
	}
	opts := options(o).withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	// Unique among processes and queues, and readable for operators.
	id := fmt.Sprintf("%.60s/%d/%s", host, os.Getpid(), crand.Text()[:12])
	return &Queue{Records: Look(db), opts: opts, id: id, leases: leases{held: map[attempt]*lease{}}, woken: make(chan struct{}, 1)}, nil
}

func (q *Queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// Add implements [jobs.Queue], served or not.
func (q *Queue) Add(ctx context.Context, j jobs.Job) error {
	body, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("a background job: %w", err)
	}
	var key any // a job without one has NULL
	if k := j.Key(); k != "" {
		key = fmt.Sprintf("%x", sha256.Sum256([]byte(k)))
	}
	most := min(max(j.Attempts, 1), math.MaxInt32-lostAttempts) + lostAttempts
	args := []any{j.Plugin, key, string(body), most, q.id, max(time.Until(j.NotBefore).Seconds(), 0)}
	q.open.Add(1) // before a worker may finish it
	err = q.insert(ctx, j.Plugin, args, q.statements.lock)
	if errors.Is(err, errAlmostFull) {
		err = q.insert(ctx, j.Plugin, args, q.statements.alone)
	}
	if err != nil {
		q.open.Add(-1)
		return err
	}
	q.wake()
	return nil
}

var errAlmostFull = errors.New("the queue is almost full")

func errClosed() error {
	return phases.Errorf(phases.CauseUnavailable, "the store of the queue is closed")
}

// insert counts and adds, on PostgreSQL beside other callers unless lock keeps them out.
func (q *Queue) insert(ctx context.Context, plugin string, args []any, lock string) error {
	var refused error // nothing was written, and others in the same transaction continue
	err := q.db.Join(ctx, "queueing a job", func(ctx context.Context, tx *sql.Tx) error {
		if lock != "" {
			if _, err := tx.ExecContext(ctx, lock); err != nil {
				return err
			}
		}
		var waiting, ofPlugin int
		if err := tx.QueryRowContext(ctx, q.statements.count, plugin).Scan(&waiting, &ofPlugin); err != nil {
			return err
		}
		if lock != q.statements.alone && q.opts.almostFull(waiting, ofPlugin) {
			refused = errAlmostFull
			return nil
		}
		if refused = q.opts.full(plugin, waiting, ofPlugin); refused != nil {
			return nil //nolint:nilerr // see above
		}
		res, err := tx.ExecContext(ctx, q.statements.add, args...)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			refused = jobs.ErrDuplicate
			return err
		}
		return nil
	})
	if err != nil && q.db.Closed() && ctx.Err() == nil {
		return errClosed()
	}
	return cmp.Or(err, refused)
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
	failed := append(args, phases.CodeOf(e.result.Err), reason(e.result.Err)) //nolint:gocritic // args is used without them
	switch e.result.Action {
	case jobs.Done:
		if e.job.Key() == "" {
			return q.statements.forget, args
		}
		return q.statements.done, args
	case jobs.Discard:
		return q.statements.discard, failed
	case jobs.Requeue:
		return q.statements.requeue, append(failed, jobs.RequeueWait(e.requeued+1, rand.Float64).Seconds())
	default:
		return q.statements.retry, append(failed, e.job.RetryWait(e.number, rand.Float64).Seconds())
	}
}

// reason is an error's text, bounded and without NUL.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
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
