package jobqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Bounds of waits; the queue in memory has the same.
const (
	minBackoff   = 10 * time.Millisecond
	maxBackoff   = time.Minute
	firstRequeue = 100 * time.Millisecond
	maxRequeue   = 10 * time.Second
	// firstStore is how long a verdict that could not be stored waits, and maxStore
	// how long at most.
	firstStore = 100 * time.Millisecond
	maxStore   = 2 * time.Second
	// maxReason bounds the text of a failure in a job's records, in bytes.
	maxReason = 2000
)

// perform makes one attempt at a job and stores the verdict. Cancel ends ctx.
func (q *Queue) perform(ctx context.Context, cancel context.CancelCauseFunc, row *rivertype.JobRow, body string,
	work func(context.Context, runtime.Attempt) runtime.Verdict,
) {
	held := q.leases.hold(attempt{id: row.ID, number: row.Attempt}, cancel)
	// Also where work panics, which River reports: then there is no verdict.
	defer q.leases.release(held)
	q.known.add(row.ID)
	defer q.known.signal()
	var j runtime.Job
	if err := json.Unmarshal([]byte(body), &j); err != nil {
		q.settle(ctx, held, row, runtime.Job{}, runtime.Verdict{Action: runtime.JobDead, Err: err})
		return
	}
	var meta jobMeta
	_ = json.Unmarshal(row.Metadata, &meta) // what cannot be read begins anew
	begin := func(ctx context.Context) error { return q.begin(ctx, held.attempt) }
	q.settle(ctx, held, row, j, work(ctx, runtime.Attempt{Job: j, Number: row.Attempt, Requeued: meta.Requeued, Shared: true, Begin: begin}))
}

// begin notes that an attempt must not be repeated.
func (q *Queue) begin(ctx context.Context, a attempt) error {
	var n int64
	err := q.db.Join(ctx, "noting that a job begins", func(ctx context.Context, tx *sql.Tx) (err error) {
		n, err = changed(tx.ExecContext(ctx, q.phrases.begin, a.id, a.number, q.id, fmt.Sprintf(`{"begun":%d}`, a.number)))
		return err
	})
	if err == nil && n == 0 {
		return errLeaseLost
	}
	return err
}

// settle stores a verdict. It tries until it succeeds, the lease is lost, or Serve
// ends; what is not stored then is an attempt that will be repeated.
func (q *Queue) settle(ctx context.Context, held *lease, row *rivertype.JobRow, j runtime.Job, v runtime.Verdict) {
	statement, args := q.ending(row, j, v)
	for wait := firstStore; ; wait = min(2*wait, maxStore) {
		var n int64
		err := q.db.Join(context.WithoutCancel(ctx), "storing what became of a job", func(ctx context.Context, tx *sql.Tx) (err error) {
			n, err = changed(tx.ExecContext(ctx, statement, args...))
			return err
		})
		switch {
		case err == nil && n == 0:
			q.opts.Logger.Warn("a job was taken away before its attempt ended", "job", held.id, "plugin", j.Plugin, "attempt", held.number, "verdict", v.Action)
			return
		case err == nil:
			if final(v.Action) {
				q.known.forget(held.id)
			}
			return
		}
		q.opts.Logger.Warn("what became of a job cannot be stored", "job", held.id, "plugin", j.Plugin, "verdict", v.Action, "error", err)
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// final says whether nothing more comes of a job by itself.
func final(a runtime.JobAction) bool { return a == runtime.JobDone || a == runtime.JobDead }

// ending is the statement that ends an attempt, with its arguments.
func (q *Queue) ending(row *rivertype.JobRow, j runtime.Job, v runtime.Verdict) (statement string, args []any) {
	args = []any{row.ID, row.Attempt, q.id}
	switch v.Action {
	case runtime.JobDone:
		return q.phrases.done, args
	case runtime.JobDead:
		return q.phrases.dead, append(args, failure(row, v.Err))
	case runtime.JobRequeue:
		var meta jobMeta
		_ = json.Unmarshal(row.Metadata, &meta) // what cannot be read begins anew
		wait := q.backoff(firstRequeue, meta.Requeued+1, maxRequeue)
		note := encode(jobMeta{Requeued: meta.Requeued + 1, Why: reason(v.Err)})
		return choose(wait, q.phrases.requeue, q.phrases.requeueLater), append(args, seconds(wait), note)
	default:
		wait := q.backoff(max(j.Backoff, minBackoff), row.Attempt, maxBackoff)
		return choose(wait, q.phrases.retry, q.phrases.retryLater), append(args, seconds(wait), failure(row, v.Err))
	}
}

// choose has the statement for a wait.
func choose(wait time.Duration, soon, later string) string {
	if wait < soonTime {
		return soon
	}
	return later
}

// backoff doubles from first with each time, up to a bound, with full jitter on its
// upper half.
func (q *Queue) backoff(first time.Duration, times int, most time.Duration) time.Duration {
	d := min(first, most)
	for range times - 1 {
		if d = min(2*d, most); d == most {
			break
		}
	}
	return d/2 + time.Duration(q.opts.Random()*float64(d/2))
}

// failure is a failed attempt, as River keeps it.
func failure(row *rivertype.JobRow, err error) string {
	return encode(attemptError{rivertype.AttemptError{At: time.Now().UTC(), Attempt: row.Attempt, Error: reason(err)}, phases.CodeOf(err)})
}

// reason is an error's text, for a database: bounded and without NUL.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// encode is a value of ours in JSON, which cannot fail.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(text)
}
