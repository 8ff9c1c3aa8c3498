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
	closed     atomic.Bool // with the queue
}

func (r *Records) checkOpen() error {
	if r.closed.Load() {
		return phases.Errorf(phases.CauseUnavailable, "the queue of background work is closed")
	}
	return nil
}

// Look returns the records of a database with the store's schema, which may be read-only. Nothing must be closed.
func Look(db *sqldb.DB) *Records { return &Records{db: db, statements: statementsFor(db.Kind())} }

// Counts counts unfinished and dead jobs. It implements [jobs.Counter].
func (r *Records) Counts(ctx context.Context) (jobs.Counts, error) {
	var c jobs.Counts
	if err := r.checkOpen(); err != nil {
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
	if err := r.checkOpen(); err != nil {
		return nil, err
	}
	return sqldb.ReadList(ctx, r.db, "listing jobs", statement, args, scanRow)
}

// scanRow keeps a job that cannot be read, so that an operator can remove it.
func scanRow(rows *sql.Rows, row *Row) error {
	var plugin, job string
	var added, due, renewed, ended float64
	err := rows.Scan(&row.ID, &row.State, &plugin, &job, &row.Attempts, &row.Requeued, &row.Why, &row.Code, &row.Error, &row.Holder, &added, &due, &renewed, &ended)
	row.Added, row.Due, row.Begun, row.Ended = at(added), at(due), at(renewed), at(ended)
	if err := json.Unmarshal([]byte(job), &row.Job); err != nil {
		row.Job = jobs.Job{Plugin: plugin}
		row.Code, row.Error = phases.CauseInternal, "the job cannot be read: "+err.Error()
	}
	return err
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
	if err := r.checkOpen(); err != nil || len(ids) == 0 {
		return nil, err
	}
	var changed []int64
	err := r.db.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) (err error) {
		changed, err = idsOf(ctx, tx, statement, list(ids))
		return err
	})
	return changed, err
}

func idsOf(ctx context.Context, tx *sql.Tx, statement string, args ...any) ([]int64, error) {
	return sqldb.List(ctx, tx, statement, args, func(rows *sql.Rows, id *int64) error { return rows.Scan(id) })
}

// list is a list as JSON.
func list(ids []int64) string {
	text, _ := json.Marshal(ids) //nolint:errchkjson // numbers always encode
	return string(text)
}
