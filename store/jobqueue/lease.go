package jobqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// renewals is how often a lease is renewed in its time. A lease that was not renewed
// for one less than that is given up before another process may take the job.
const renewals = 4

// errLeaseLost ends the context of work whose job is, or may soon be, another's.
var errLeaseLost = errors.New("the lease on the job was lost: another process may have it")

// lostReason is what a job's records say of an attempt whose lease ran out.
const lostReason = "the process that worked on it ended, or lost the database, without a verdict"

// interruptedReason is the same for one that must not be repeated.
const interruptedReason = lostReason + "; it may have been done, and is not repeated by itself: it does not say that calling it twice does no harm"

// attempt is what a lease is on.
type attempt struct {
	id     int64
	number int
}

// lease is the right to work on a job.
type lease struct {
	attempt

	// end ends the work's context.
	end context.CancelCauseFunc
	// renewed is when it was certain last; the mutex of leases guards it.
	renewed time.Time
}

// leases are those that this process holds. The zero value holds none.
type leases struct {
	mu   sync.Mutex
	held map[attempt]*lease
}

// hold notes a lease on a job that has just been taken.
func (l *leases) hold(a attempt, end context.CancelCauseFunc) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[attempt]*lease{}
	}
	l.held[a] = &lease{attempt: a, end: end, renewed: time.Now()}
	return l.held[a]
}

// release forgets a lease. It is not renewed any more, so that a job whose attempt
// has no verdict is offered again. A job that was put off comes back under the same
// number, maybe before its last attempt has released it: that lease stays.
func (l *leases) release(was *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[was.attempt] == was {
		delete(l.held, was.attempt)
	}
}

// all are the attempts with a lease.
func (l *leases) all() []attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]attempt, 0, len(l.held))
	for a := range l.held {
		list = append(list, a)
	}
	return list
}

// keep notes what became of leases that were asked about at a time: those that are
// still ours are certain from then on, the others are lost.
func (l *leases) keep(asked []attempt, ours map[attempt]bool, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range asked {
		held, ok := l.held[a]
		switch {
		case !ok: // it ended meanwhile
		case ours[a]:
			held.renewed = at
		default:
			held.end(errLeaseLost)
		}
	}
}

// expire gives up those that were not certain for a time.
func (l *leases) expire(age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.held {
		if time.Since(held.renewed) >= age {
			held.end(errLeaseLost)
		}
	}
}

// tend renews this process's leases, and takes away those of others that have run
// out.
func (q *Queue) tend(ctx context.Context) {
	q.renew(ctx)
	if ctx.Err() != nil {
		return
	}
	if err := q.rescue(ctx); err != nil && ctx.Err() == nil {
		q.opts.Logger.Warn("jobs of ended processes cannot be looked for", "error", err)
	}
}

// renew renews this process's leases. While the database is away they grow old, and
// are given up in time.
func (q *Queue) renew(ctx context.Context) {
	asked := q.leases.all()
	if len(asked) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.opts.Lease/renewals)
	defer cancel()
	at := time.Now()
	ours, err := q.renewed(bounded, asked)
	if err == nil {
		q.leases.keep(asked, ours, at)
		return
	}
	q.opts.Logger.Warn("the leases on jobs cannot be renewed", "jobs", len(asked), "error", err)
	q.leases.expire(q.opts.Lease - q.opts.Lease/renewals)
}

// renewed renews leases in the database, and has those that were still ours.
func (q *Queue) renewed(ctx context.Context, asked []attempt) (map[attempt]bool, error) {
	ids := make([]int64, len(asked))
	for i, a := range asked {
		ids[i] = a.id
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var ours map[attempt]bool
	err = q.db.Join(ctx, "renewing leases", func(ctx context.Context, tx *sql.Tx) error {
		ours = map[attempt]bool{}
		return sqldb.Each(ctx, tx, q.phrases.renew, []any{q.id, string(list)}, func(rows *sql.Rows) error {
			var a attempt
			err := rows.Scan(&a.id, &a.number)
			ours[a] = true
			return err
		})
	})
	return ours, err
}

// rescue offers jobs again whose lease has run out, or buries those that may have no
// other attempt.
func (q *Queue) rescue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, q.opts.Lease/renewals)
	defer cancel()
	age := seconds(q.opts.Lease)
	var found bool
	var now float64
	err := q.db.Reader().QueryRowContext(ctx, q.phrases.expired, age).Scan(&found, &now)
	if err != nil || !q.clock.steady(now, time.Now(), q.opts.Lease) || !found {
		return q.db.Fail(ctx, "looking for lost jobs", err)
	}
	var interrupted, buried, rescued []int64
	err = q.db.Join(ctx, "offering lost jobs again", func(ctx context.Context, tx *sql.Tx) (err error) {
		if interrupted, err = idsOf(ctx, tx, q.phrases.interrupted, age, interruptedReason); err != nil {
			return err
		}
		if buried, err = idsOf(ctx, tx, q.phrases.bury, age, lostReason); err != nil {
			return err
		}
		rescued, err = idsOf(ctx, tx, q.phrases.rescue, age, lostReason)
		return err
	})
	if err != nil {
		return err
	}
	if len(interrupted)+len(buried)+len(rescued) > 0 {
		q.opts.Logger.Warn("attempts at jobs ended without a verdict", "offered_again", len(rescued), "interrupted", interrupted, "dead", buried)
	}
	if len(rescued) > 0 {
		q.flow.wake()
	}
	return nil
}

// clock notices when the database's clock is set. After a step forward every lease
// looks old until its holder has renewed it.
type clock struct {
	wall float64 // the database's, in seconds
	seen time.Time
	wait int // looks for which leases are left alone
}

// steady reports whether leases can be judged by the database's clock, which has been
// looked at now: not by a first look, nor soon after a step of as much as living
// processes leave of their leases.
func (c *clock) steady(wall float64, now time.Time, lease time.Duration) bool {
	step := wall - c.wall - now.Sub(c.seen).Seconds()
	if c.seen.IsZero() {
		step, c.wait = 0, 1
	} else if c.wait > 0 {
		c.wait--
	}
	if c.wall, c.seen = wall, now; math.Abs(step) > lease.Seconds()/2 {
		c.wait = 2 // in one of these each living process renews its leases
	}
	return c.wait == 0
}

// changed is how many rows a statement changed.
func changed(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// seconds is a duration as statements take it.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
