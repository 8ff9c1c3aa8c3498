package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"
)

// maxBatch is how many calls of Join share a transaction at most, so that others
// who wait for the writer get their turn.
const maxBatch = 128

// maxBatchTime is after how long a batch takes no further calls: what is one
// transaction keeps all others from the database, and some of the calls are long.
const maxBatchTime = 20 * time.Millisecond

// errBatchLost is the answer to those whose transaction ended with a panic in
// another's part of it.
var errBatchLost = errors.New("the transaction was given up")

// Join is [DB.Change] for many callers at once. Of SQLite, whose writer is one and
// waits for the disk with each transaction, calls that come together share one:
// whoever finds nobody at it leads, and runs what has queued up by the time that
// the database is his. Each part is a savepoint, so that one that fails is undone
// alone. Nobody is answered before the transaction is kept, and nobody waits for
// others to come.
//
// Do may run in the goroutine of another caller. PostgreSQL does by itself what
// Join is for: there it is Change.
func (d *DB) Join(ctx context.Context, doing string, do func(ctx context.Context, tx *sql.Tx) error) error {
	if d.dialect.blocks {
		return d.Change(ctx, doing, do)
	}
	if err := d.checkWritable(doing); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, d.opts.LockTimeout)
	defer cancel()
	j := &job{answer: make(chan error, 1), lead: make(chan struct{}, 1)}
	j.do = func(tx *sql.Tx) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return do(context.WithoutCancel(ctx), tx)
	}
	d.group.enter(j)
	select {
	case err := <-j.answer:
		return d.Fail(ctx, doing, err)
	case <-j.lead:
		d.leadBatch(bounded, j)
	case <-bounded.Done():
		if d.group.leave(j) {
			return d.Fail(ctx, doing, context.Cause(bounded))
		}
	}
	return d.Fail(ctx, doing, <-j.answer)
}

// job is one call of Join.
type job struct {
	do func(tx *sql.Tx) error
	// answer gets the outcome, once. Lead gets a signal when the job's caller is to
	// lead the next batch.
	answer chan error
	lead   chan struct{}
	// appointed says that the signal was given; the group's mutex guards it.
	appointed bool
}

// group is the queue of those who change a SQLite database together. While it is
// not empty, or a batch runs, exactly one caller leads; it is the first of the
// queue until it takes its batch.
type group struct {
	mu    sync.Mutex
	queue []*job
	// led says that somebody leads.
	led bool
}

// enter puts a job into the queue, and makes its caller the leader where there is
// none.
func (g *group) enter(j *job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, j)
	if !g.led {
		g.next()
	}
}

// leave takes a job out of the queue. It reports false where the job is out of it
// by now: then it runs, and will be answered.
func (g *group) leave(j *job) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.queue, j)
	if at < 0 {
		return false
	}
	g.queue = slices.Delete(g.queue, at, at+1)
	if j.appointed {
		g.next()
	}
	return true
}

// take takes the first job out of the queue, the leader's own at first; nil if there
// is none. It reports whether the queue is empty then.
func (g *group) take() (j *job, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		j = g.queue[0]
		g.queue = slices.Delete(g.queue, 0, 1)
	}
	return j, len(g.queue) == 0
}

// pass ends a leader's work: the next in the queue leads.
func (g *group) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next()
}

// next makes the first in the queue the leader. The mutex is held.
func (g *group) next() {
	g.led = len(g.queue) > 0
	if g.led {
		g.queue[0].appointed = true
		g.queue[0].lead <- struct{}{}
	}
}

// leadBatch begins a transaction and runs with it what is in the queue by then.
// All of that is answered, the leader's own job in any case.
func (d *DB) leadBatch(ctx context.Context, j *job) {
	tx, end, err := d.begin(ctx)
	if err != nil {
		d.group.leave(j) // the others try by themselves
		j.answer <- err
		return
	}
	defer end()
	var b batch
	defer func() {
		d.group.pass()
		for n, j := range b.jobs {
			j.answer <- b.answers[n]
		}
	}()
	defer func() { _ = tx.Rollback() }()                                  // of no effect behind Commit
	if err = d.runBatch(context.WithoutCancel(ctx), tx, &b); err == nil { // nothing waits behind begin
		err = tx.Commit()
	}
	if err != nil {
		b.fail(err)
	}
}

// batch is the jobs of a transaction with their outcomes.
type batch struct {
	jobs    []*job
	answers []error
}

// fail gives all jobs the error of their transaction. That is also the answer to
// those that had failed by themselves: which of the two it was, they need not know.
func (b *batch) fail(err error) {
	for n := range b.answers {
		b.answers[n] = err
	}
}

// runBatch runs jobs and notes their outcomes. It returns an error where the whole
// transaction is lost.
func (d *DB) runBatch(ctx context.Context, tx *sql.Tx, b *batch) error {
	began := time.Now()
	for n := 0; n < maxBatch && (n == 0 || time.Since(began) < d.batchTime); n++ {
		j, last := d.group.take()
		if j == nil {
			break
		}
		b.jobs, b.answers = append(b.jobs, j), append(b.answers, errBatchLost)
		if n == 0 && last {
			b.answers[0] = j.do(tx)
			return b.answers[0]
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT part"); err != nil {
			return err
		}
		b.answers[n] = j.do(tx)
		if b.answers[n] != nil {
			// Some failures, as of a full disk, end the whole transaction: then there is
			// no savepoint any more.
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO part"); err != nil {
				return b.answers[n]
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE part"); err != nil {
			return err
		}
	}
	return nil
}
