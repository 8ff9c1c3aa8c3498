package jobqueue

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// A lease is renewed this often in its time, and given up when only one renewal's time is left.
const renewals = 4

// errLeaseLost ends the context of work whose job belongs, or soon may, to another process.
var errLeaseLost = errors.New("the lease on the job was lost: another process may have it")

// The recorded errors of an attempt whose lease expired, and of one that must not be repeated.
const (
	lostReason        = "the process that worked on it ended, or lost the database, without a result"
	interruptedReason = lostReason + "; it may have been done, and is not repeated automatically: it does not say that calling it twice is harmless"
)

type attempt struct {
	id     int64
	number int
}

type lease struct {
	attempt

	end context.CancelCauseFunc
	// renewed is when the lease was last certain; the mutex of leases guards it.
	renewed time.Time
}

type leases struct {
	mu   sync.Mutex
	held map[attempt]*lease
}

func (l *leases) hold(a attempt, end context.CancelCauseFunc) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[a] = &lease{attempt: a, end: end, renewed: time.Now()}
	return l.held[a]
}

// release removes a lease; a job without a result is then rescued. A requeued job may come back
// with the same number before its last attempt has released it: that lease stays.
func (l *leases) release(was *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[was.attempt] == was {
		delete(l.held, was.attempt)
	}
}

func (l *leases) all() []attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.held))
}

// keep updates the leases that were asked about: those not in ours are lost.
func (l *leases) keep(asked []attempt, ours map[attempt]bool, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range asked {
		if held := l.held[a]; held != nil && ours[a] {
			held.renewed = at
		} else if held != nil {
			held.end(errLeaseLost)
		}
	}
}

func (l *leases) expire(age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.held {
		if time.Since(held.renewed) >= age {
			held.end(errLeaseLost)
		}
	}
}

func (q *Queue) maintain(ctx context.Context) {
	q.renew(ctx)
	if err := cmp.Or(q.rescue(ctx), q.clean(ctx)); err != nil && ctx.Err() == nil {
		q.opts.Logger.Warn("jobs of ended processes cannot be rescued, or old ones removed", "error", err)
	}
}

// renew renews the leases. While the database is down they age and are given up in time.
func (q *Queue) renew(ctx context.Context) {
	asked := q.leases.all()
	if len(asked) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.opts.Lease/renewals)
	defer cancel()
	at, ids := time.Now(), make([]int64, len(asked))
	for i, a := range asked {
		ids[i] = a.id
	}
	var ours map[attempt]bool
	err := q.db.Join(bounded, "renewing leases", func(ctx context.Context, tx *sql.Tx) error {
		ours = map[attempt]bool{}
		return sqldb.Each(ctx, tx, q.statements.renew, []any{q.id, list(ids)}, func(rows *sql.Rows) error {
			var a attempt
			err := rows.Scan(&a.id, &a.number)
			ours[a] = true
			return err
		})
	})
	if err == nil {
		q.leases.keep(asked, ours, at)
		return
	}
	q.opts.Logger.Warn("the leases on jobs cannot be renewed", "jobs", len(asked), "error", err)
	q.leases.expire(q.opts.Lease - q.opts.Lease/renewals)
}

// rescue ends the attempts whose lease has expired: their jobs are offered again, or discarded
// if the attempt must not be repeated or was the last.
func (q *Queue) rescue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, q.opts.Lease/renewals)
	defer cancel()
	age := q.opts.Lease.Seconds()
	var found bool
	var now float64
	err := q.db.Reader().QueryRowContext(ctx, q.statements.expired, age).Scan(&found, &now)
	if err != nil || !q.clock.steady(now, time.Now(), q.opts.Lease) || !found {
		return q.db.Fail(ctx, "looking for lost jobs", err)
	}
	var discarded, rescued []int64
	err = q.db.Join(ctx, "rescuing jobs", func(ctx context.Context, tx *sql.Tx) (err error) {
		if discarded, err = idsOf(ctx, tx, q.statements.discardLost, age, lostReason, interruptedReason); err != nil {
			return err
		}
		rescued, err = idsOf(ctx, tx, q.statements.rescue, age, lostReason)
		return err
	})
	if err != nil {
		return err
	}
	if len(discarded)+len(rescued) > 0 {
		q.opts.Logger.Warn("attempts at jobs ended without a result", "rescued", len(rescued), "discarded", discarded)
	}
	if len(rescued) > 0 {
		q.wake()
	}
	return nil
}

// clock notices steps of the database's clock. After a step forward every lease looks expired
// until its holder renews it.
type clock struct {
	wall  float64 // the database's, in seconds
	seen  time.Time
	since time.Time // when it was first looked at, or seen to step
}

// steady reports whether the database's clock, just read, can judge leases: not before it has been
// watched for a lease without a step that could make living leases look expired. In that time each
// living process renews its leases, or gives them up.
func (c *clock) steady(wall float64, now time.Time, lease time.Duration) bool {
	step := wall - c.wall - now.Sub(c.seen).Seconds()
	if c.seen.IsZero() || math.Abs(step) > lease.Seconds()/2 {
		c.since = now
	}
	c.wall, c.seen = wall, now
	return now.Sub(c.since) >= lease
}
