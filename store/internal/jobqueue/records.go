package jobqueue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	maxPage  = 500
	pageSize = 50
)

// Records are a database's [jobs.Records].
type Records struct {
	db         *sqldb.DB
	statements *statements
}

// Look returns the records of a database with the store's schema, which may be read-only. Nothing must be closed.
func Look(db *sqldb.DB) *Records { return &Records{db: db, statements: statementsFor(db.Kind())} }

// Counts implements [jobs.Counter].
func (r *Records) Counts(ctx context.Context) (jobs.Counts, error) {
	var c jobs.Counts
	err := r.db.Reader().QueryRowContext(ctx, r.statements.states).Scan(&c.Running, &c.Waiting, &c.Scheduled, &c.Dead, &c.OldestSeconds)
	c.OldestSeconds = max(c.OldestSeconds, 0) // clocks differ
	return c, r.db.Fail(ctx, "counting jobs", err)
}

// List implements [jobs.Records].
func (r *Records) List(ctx context.Context, f jobs.Filter) ([]jobs.Row, error) {
	statement := r.statements.list
	if f.Dead {
		statement = r.statements.listDead
	}
	return r.rows(ctx, statement, f.After, f.Plugin, min(cmp.Or(max(f.Limit, 0), pageSize), maxPage))
}

// Job implements [jobs.Records].
func (r *Records) Job(ctx context.Context, id int64) (jobs.Row, error) {
	list, err := r.rows(ctx, r.statements.show, id)
	if err == nil && len(list) == 0 {
		err = sqldb.Failf(sqldb.CodeNotFound, "list jobs to see their ids", "no job has the id %d", id)
	}
	if err != nil {
		return jobs.Row{}, err
	}
	return list[0], nil
}

func (r *Records) rows(ctx context.Context, statement string, args ...any) ([]jobs.Row, error) {
	return sqldb.ReadList(ctx, r.db, "listing jobs", statement, args, scanRow)
}

// scanRow keeps a job that cannot be read, so that an operator can remove it.
func scanRow(rows *sql.Rows, row *jobs.Row) error {
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

// Retry implements [jobs.Records].
func (r *Records) Retry(ctx context.Context, ids ...int64) ([]int64, error) {
	return r.onDead(ctx, "offering dead jobs again", r.statements.retryDead, ids)
}

// Remove implements [jobs.Records].
func (r *Records) Remove(ctx context.Context, ids ...int64) ([]int64, error) {
	return r.onDead(ctx, "removing dead jobs", r.statements.removeDead, ids)
}

func (r *Records) onDead(ctx context.Context, doing, statement string, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
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
