package jobqueue_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// setClock makes a database look as it does when its clock has been set forward by so
// many hours, or back: everything that it noted is older by as much.
func setClock(t *testing.T, dsn string, hours int) {
	t.Helper()
	var set []string
	for _, column := range []string{"renewed", "added", "due", "ended"} {
		set = append(set, fmt.Sprintf("%[1]s = CASE WHEN %[1]s > 0 THEN %[1]s - %[2]d ELSE 0 END", column, hours*3600))
	}
	execute(t, dsn, "UPDATE jobs SET "+strings.Join(set, ", "))
}

// TestClockSetBack: what waits when a clock is set back is not lost, and done once.
func TestClockSetBack(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobs.QueueOptions{Lease: 2 * time.Second})
		const total = 10
		for n := range total {
			add(t, q, named(fmt.Sprint("job-", n)))
		}
		setClock(t, dsn, -24)
		if err := q.Add(t.Context(), named("job-0")); err == nil {
			t.Error("a job that waits was added twice")
		}
		var began atomic.Int32
		serve(t, q, func(context.Context, jobs.Job, int) jobs.Result {
			began.Add(1)
			return jobs.Result{Action: jobs.Done}
		})
		add(t, q, named("later")) // by the clock as it is now
		await(t, "the new one is done", func() bool { return began.Load() > 0 })
		if c := counts(t, q); c.Waiting+c.Scheduled+int(began.Load()) < total+1 {
			t.Errorf("jobs are lost: %+v, %d begun", c, began.Load())
		}
		setClock(t, dsn, 24) // the time comes
		await(t, "no open jobs", func() bool { return counts(t, q) == jobs.Counts{} })
		if n := began.Load(); n != total+1 {
			t.Errorf("%d jobs began %d times", total+1, n)
		}
	})
}
