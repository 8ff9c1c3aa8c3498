package jobqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// maxPage is the longest page of dead jobs, and pageSize the usual one.
const (
	maxPage  = 500
	pageSize = 50
)

// Page is a part of a list.
type Page struct {
	// After is the last id of the page before; zero begins.
	After int64
	// Limit is how many are wanted; zero is 50, more than 500 is 500.
	Limit int
}

// DeadJob is a job that was given up.
type DeadJob struct {
	// ID is its number in the queue's database.
	ID  int64       `json:"id"`
	Job runtime.Job `json:"job"`
	// Attempts is how often it was tried.
	Attempts int `json:"attempts"`
	// Error is why the last attempt failed; for the operator's eyes.
	Error string `json:"error,omitempty"`
	// At is when it was given up.
	At time.Time `json:"at"`
}

// Dead lists dead jobs in the order in which they were queued.
func (q *Queue) Dead(ctx context.Context, p Page) ([]DeadJob, error) {
	if err := q.checkOpen(); err != nil {
		return nil, err
	}
	limit := min(or(max(p.Limit, 0), pageSize), maxPage)
	params := river.NewJobListParams().
		Queues(queueName).
		States(rivertype.JobStateDiscarded, rivertype.JobStateCancelled).
		Where("id > @after", river.NamedArgs{"after": p.After}).
		OrderBy(river.JobListOrderByID, river.SortOrderAsc).
		First(limit)
	rows, err := q.flow.list(ctx, params)
	if err != nil {
		return nil, err
	}
	list := make([]DeadJob, len(rows))
	for i, row := range rows {
		list[i] = deadJob(row)
	}
	return list, nil
}

// deadJob reads a row. A job that cannot be read is listed all the same: an operator
// can remove it.
func deadJob(row *rivertype.JobRow) DeadJob {
	d := DeadJob{ID: row.ID, Attempts: row.Attempt}
	if row.FinalizedAt != nil {
		d.At = row.FinalizedAt.UTC()
	}
	if n := len(row.Errors); n > 0 {
		d.Error = row.Errors[n-1].Error
	}
	var args jobArgs
	err := json.Unmarshal(row.EncodedArgs, &args)
	if err == nil {
		err = json.Unmarshal([]byte(args.Job), &d.Job)
	}
	if err != nil {
		d.Error = "the job cannot be read: " + err.Error()
	}
	return d
}

// Retry offers a dead job again, at once and with all its attempts. The queue's
// bounds do not hold for it. It fails with CodeNotFound where no dead job has the
// id.
func (q *Queue) Retry(ctx context.Context, id int64) error {
	err := q.onDead(ctx, "offering a dead job again", q.phrases.retryDead, id)
	if err == nil {
		q.flow.wake()
	}
	return err
}

// Remove removes a dead job, and with it the memory of its idempotency key. It fails
// with CodeNotFound where no dead job has the id.
func (q *Queue) Remove(ctx context.Context, id int64) error {
	return q.onDead(ctx, "removing a dead job", q.phrases.removeDead, id)
}

func (q *Queue) onDead(ctx context.Context, doing, statement string, id int64) error {
	if err := q.checkOpen(); err != nil {
		return err
	}
	return q.db.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) error {
		n, err := changed(tx.ExecContext(ctx, statement, id))
		if err == nil && n == 0 {
			return sqldb.Failf(sqldb.CodeNotFound, "list dead jobs to see their ids", "%s: no dead job has the id %d", doing, id)
		}
		return err
	})
}
