package jobqueue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	maxPage  = 500
	pageSize = 50
)

// State is the state of a job.
type State string

// The states of kept jobs.
const (
	StateWaiting   State = "waiting"   // due
	StateScheduled State = "scheduled" // waits for its time or its next attempt
	StateRunning   State = "running"
	StateDead      State = "dead" // discarded, and waits for an operator
)

// States lists all states.
func States() []State { return []State{StateWaiting, StateScheduled, StateRunning, StateDead} }

// Filter selects a page of a list.
type Filter struct {
	// Dead lists dead jobs instead of unfinished ones.
	Dead bool
	// Plugin selects one plugin's jobs; empty is all.
	Plugin string
	// After is the last id of the previous page; zero begins.
	After int64
	// Limit is 50 if zero, and 500 at most.
	Limit int
}

// Row is a job in the queue.
type Row struct {
	// ID is its number in the queue's database.
	ID    int64
	State State
	Job   jobs.Job
	// Attempts is how often it was tried, Requeued how often it was requeued since, and Why the last reason.
	Attempts int
	Requeued int
	Why      string
	// Code is the cause of the last failure and Error its text, for operators only.
	Code  phases.Cause
	Error string
	// Added is when it was queued, Due when it may be tried, Begun when the last
	// attempt began or its lease was renewed, Ended when it was discarded.
	Added, Due, Begun, Ended time.Time
	// Holder is the process that works on it, or did last: host, process id, and a random part.
	Holder string
}

// Records lists and changes jobs without working on them. It is safe for concurrent use.
type Records struct {
	db         *sqldb.DB
	statements *statements
	absent     bool
	closed     atomic.Bool // with the queue
}

func (r *Records) checkOpen() error {
	if r.closed.Load() {
		return phases.Errorf(phases.CauseUnavailable, "the queue of background work is closed")
	}
	return nil
}

// Look opens the records of a database, which may be read-only. Without a queue it has no jobs.
// Of the options only Schema matters. Nothing must be closed.
func Look(ctx context.Context, db *sqldb.DB, o Options) (*Records, error) {
	o = o.withDefaults(db.Kind())
	if err := o.check(); err != nil {
		return nil, err
	}
	schema, exists := "", "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'river_job')"
	if db.Kind() == sqldb.Postgres {
		var err error
		if schema, err = schemaFor(ctx, db, o); err != nil {
			return nil, err
		}
		exists = "SELECT to_regclass('" + schema + ".river_job') IS NOT NULL" // it needs no quotes
	}
	r := &Records{db: db, statements: statementsFor(db.Kind(), schema)}
	var there bool
	err := db.Reader().QueryRowContext(ctx, exists).Scan(&there)
	r.absent = !there
	return r, db.Fail(ctx, "looking for the queue", err)
}

// Counts counts unfinished and dead jobs. It implements [jobs.Counter].
func (r *Records) Counts(ctx context.Context) (jobs.Counts, error) {
	var c jobs.Counts
	if err := r.checkOpen(); err != nil || r.absent {
		return c, err
	}
	err := r.db.Reader().QueryRowContext(ctx, r.statements.states).Scan(&c.Running, &c.Waiting, &c.Scheduled, &c.Dead, &c.OldestSeconds)
	c.OldestSeconds = max(c.OldestSeconds, 0) // clocks differ
	return c, r.db.Fail(ctx, "counting jobs", err)
}

// List lists jobs in the order in which they were queued.
func (r *Records) List(ctx context.Context, f Filter) ([]Row, error) {
	statement := r.statements.list
	if f.Dead {
		statement = r.statements.listDead
	}
	return r.rows(ctx, statement, f.After, f.Plugin, min(cmp.Or(max(f.Limit, 0), pageSize), maxPage))
}

// Job returns one job that is unfinished or dead; others are CodeNotFound.
func (r *Records) Job(ctx context.Context, id int64) (Row, error) {
	list, err := r.rows(ctx, r.statements.show, id)
	if err == nil && len(list) == 0 {
		err = sqldb.Failf(sqldb.CodeNotFound, "list jobs to see their ids", "no job has the id %d", id)
	}
	if err != nil {
		return Row{}, err
	}
	return list[0], nil
}

func (r *Records) rows(ctx context.Context, statement string, args ...any) ([]Row, error) {
	if err := r.checkOpen(); err != nil || r.absent {
		return nil, err
	}
	return sqldb.ReadList(ctx, r.db, "listing jobs", statement, args, scanRow)
}

func scanRow(rows *sql.Rows, row *Row) error {
	var args, metadata, failure string
	var added, due, begun, ended float64
	err := rows.Scan(&row.ID, &row.State, &row.Attempts, &args, &metadata, sqldb.OrZero(&failure), sqldb.OrZero(&row.Holder),
		&added, &due, sqldb.OrZero(&begun), sqldb.OrZero(&ended))
	row.Added, row.Due, row.Begun, row.Ended = at(added), at(due), at(begun), at(ended)
	row.decode(args, metadata, failure)
	return err
}

// decode keeps a job that cannot be decoded, so that an operator can remove it.
func (row *Row) decode(args, metadata, failure string) {
	var meta jobMeta
	_ = json.Unmarshal([]byte(metadata), &meta) // unreadable metadata says nothing
	row.Requeued, row.Why = meta.Requeued, meta.Why
	var last attemptError
	if json.Unmarshal([]byte(failure), &last) == nil {
		row.Code, row.Error = last.Code, last.Error
	}
	var stored jobArgs
	err := json.Unmarshal([]byte(args), &stored)
	if err == nil {
		err = json.Unmarshal([]byte(stored.Job), &row.Job)
	}
	if err != nil {
		row.Job = jobs.Job{Plugin: meta.Plugin}
		row.Code, row.Error = phases.CauseInternal, "the job cannot be read: "+err.Error()
	}
}

// at converts seconds since 1970; zero is the zero time.
func at(seconds float64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds*1000 + 0.5)).UTC()
}

// Retry offers dead jobs again, at once, with all their attempts and beyond the queue's bounds.
// It returns the ids that were dead. Interrupted jobs are repeated: the caller has decided so.
func (r *Records) Retry(ctx context.Context, ids ...int64) ([]int64, error) {
	return r.onDead(ctx, "offering dead jobs again", r.statements.retryDead, ids)
}

// Remove removes dead jobs with their idempotency keys, and returns the ids that were dead.
func (r *Records) Remove(ctx context.Context, ids ...int64) ([]int64, error) {
	return r.onDead(ctx, "removing dead jobs", r.statements.removeDead, ids)
}

func (r *Records) onDead(ctx context.Context, doing, statement string, ids []int64) ([]int64, error) {
	if err := r.checkOpen(); err != nil || r.absent || len(ids) == 0 {
		return nil, err
	}
	var changed []int64
	err := r.db.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) (err error) {
		changed, err = idsOf(ctx, tx, statement, encode(ids))
		return err
	})
	return changed, err
}

func idsOf(ctx context.Context, tx *sql.Tx, statement string, args ...any) ([]int64, error) {
	return sqldb.List(ctx, tx, statement, args, func(rows *sql.Rows, id *int64) error { return rows.Scan(id) })
}
