package jobqueue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// maxPage is the longest page of a list, and pageSize the usual one.
const (
	maxPage  = 500
	pageSize = 50
)

// State is how far a job has come.
type State string

// The states of jobs that are kept.
const (
	// StateWaiting is due; StateScheduled waits for its time or its next attempt.
	StateWaiting   State = "waiting"
	StateScheduled State = "scheduled"
	StateRunning   State = "running"
	// StateDead is given up, and waits for an operator.
	StateDead State = "dead"
)

// States are all of them.
func States() []State { return []State{StateWaiting, StateScheduled, StateRunning, StateDead} }

// Filter is a part of a list.
type Filter struct {
	// Dead lists dead jobs; otherwise it is those that have not ended.
	Dead bool
	// Plugin is whose jobs are wanted; empty is everybody's.
	Plugin string
	// After is the last id of the page before; zero begins.
	After int64
	// Limit is how many are wanted; zero is 50, more than 500 is 500.
	Limit int
}

// Row is a job as the queue keeps it.
type Row struct {
	// ID is its number in the queue's database.
	ID    int64
	State State
	Job   runtime.Job
	// Attempts is how often it was tried, Requeued how often it was put off since, and
	// Why the last reason for that.
	Attempts int
	Requeued int
	Why      string
	// Code is the cause of the last failure, and Error what there is to say of it, for
	// the operator's eyes.
	Code  phases.Cause
	Error string
	// Added is when it was queued, Due when it may be tried, Begun when the last
	// attempt began or its lease was renewed, Ended when it was given up.
	Added, Due, Begun, Ended time.Time
	// Holder is the process that works on it, or did last: host, process id, and a
	// word of its own.
	Holder string
}

// Records are what a database says of its queue, without working on it. They are
// safe for concurrent use.
type Records struct {
	db      *sqldb.DB
	phrases *phrases
	// refuse says why nothing can be asked any more; nil for records by themselves.
	refuse func() error
	// absent says that the database has no queue.
	absent bool
}

// Look opens the records of a database, which may be open for reading alone, and may
// have no queue yet: that is one without jobs. Of the options only Schema matters.
// Nothing has to be closed.
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
	r := &Records{db: db, phrases: phrasesFor(db.Kind(), schema)}
	var there bool
	err := db.Reader().QueryRowContext(ctx, exists).Scan(&there)
	r.absent = !there
	return r, db.Fail(ctx, "looking for the queue", err)
}

// usable refuses what cannot be asked any more.
func (r *Records) usable() error {
	if r.refuse == nil {
		return nil
	}
	return r.refuse()
}

// Counts counts the jobs in the database, but for finished ones. It implements
// [runtime.QueueCounter].
func (r *Records) Counts(ctx context.Context) (runtime.QueueCounts, error) {
	var c runtime.QueueCounts
	if err := r.usable(); err != nil || r.absent {
		return c, err
	}
	err := r.db.Reader().QueryRowContext(ctx, r.phrases.states).Scan(&c.Running, &c.Waiting, &c.Scheduled, &c.Dead, &c.OldestSeconds)
	c.OldestSeconds = max(c.OldestSeconds, 0) // clocks differ
	return c, r.db.Fail(ctx, "counting jobs", err)
}

// List lists jobs in the order in which they were queued.
func (r *Records) List(ctx context.Context, f Filter) ([]Row, error) {
	statement := r.phrases.list
	if f.Dead {
		statement = r.phrases.listDead
	}
	return r.rows(ctx, statement, f.After, f.Plugin, min(cmp.Or(max(f.Limit, 0), pageSize), maxPage))
}

// Job has one job. It fails with CodeNotFound where no job that has not ended, and no
// dead one, has the id.
func (r *Records) Job(ctx context.Context, id int64) (Row, error) {
	list, err := r.rows(ctx, r.phrases.show, id)
	if err != nil {
		return Row{}, err
	}
	if len(list) == 0 {
		return Row{}, sqldb.Failf(sqldb.CodeNotFound, "list jobs to see their ids", "looking for a job: none has the id %d", id)
	}
	return list[0], nil
}

// rows has the jobs of a statement that selects phrases.columns.
func (r *Records) rows(ctx context.Context, statement string, args ...any) ([]Row, error) {
	if err := r.usable(); err != nil || r.absent {
		return nil, err
	}
	list := []Row{}
	err := r.db.Snapshot(ctx, "listing jobs", func(tx *sql.Tx) error {
		list = list[:0]
		return sqldb.Each(ctx, tx, statement, args, func(rows *sql.Rows) error {
			var raw rawRow
			if err := raw.scan(rows); err != nil {
				return err
			}
			list = append(list, raw.row())
			return nil
		})
	})
	return list, err
}

// rawRow is a row of River's table.
type rawRow struct {
	id              int64
	state           string
	attempt         int
	args, meta      string
	failure, holder sql.NullString
	added, due      float64
	begun, ended    sql.NullFloat64
}

func (r *rawRow) scan(rows *sql.Rows) error {
	return rows.Scan(&r.id, &r.state, &r.attempt, &r.args, &r.meta, &r.failure, &r.holder, &r.added, &r.due, &r.begun, &r.ended)
}

// row reads it. A job that cannot be read is listed all the same: an operator can
// remove it.
func (r *rawRow) row() Row {
	var meta jobMeta
	_ = json.Unmarshal([]byte(r.meta), &meta) // what cannot be read says nothing
	row := Row{
		ID: r.id, State: State(r.state), Attempts: r.attempt, Requeued: meta.Requeued, Why: meta.Why, Holder: r.holder.String,
		Added: at(r.added), Due: at(r.due), Begun: at(r.begun.Float64), Ended: at(r.ended.Float64),
	}
	var last attemptError
	if r.failure.Valid && json.Unmarshal([]byte(r.failure.String), &last) == nil {
		row.Code, row.Error = last.Code, last.Error
	}
	var args jobArgs
	err := json.Unmarshal([]byte(r.args), &args)
	if err == nil {
		err = json.Unmarshal([]byte(args.Job), &row.Job)
	}
	if err != nil {
		row.Job = runtime.Job{Plugin: meta.Plugin}
		row.Code, row.Error = phases.CauseInternal, "the job cannot be read: "+err.Error()
	}
	return row
}

// at is a time of so many seconds since 1970; none is the zero time.
func at(seconds float64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds*1000 + 0.5)).UTC()
}

// Retry offers dead jobs again, at once and with all their attempts, and has those
// that were. The queue's bounds do not hold for them. One that was interrupted is
// repeated by that: whoever retries it has found out that it may be.
func (r *Records) Retry(ctx context.Context, ids ...int64) ([]int64, error) {
	return r.onDead(ctx, "offering dead jobs again", r.phrases.retryDead, ids)
}

// Remove removes dead jobs, and with them the memory of their idempotency keys, and
// has those that were.
func (r *Records) Remove(ctx context.Context, ids ...int64) ([]int64, error) {
	return r.onDead(ctx, "removing dead jobs", r.phrases.removeDead, ids)
}

// onDead runs a statement on dead jobs.
func (r *Records) onDead(ctx context.Context, doing, statement string, ids []int64) ([]int64, error) {
	if err := r.usable(); err != nil || r.absent || len(ids) == 0 {
		return nil, err
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var changed []int64
	err = r.db.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) (err error) {
		changed, err = idsOf(ctx, tx, statement, string(list))
		return err
	})
	return changed, err
}
