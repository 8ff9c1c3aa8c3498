package jobqueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/sqldb/schema"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

// programs are what the test binary is for other tests.
func programs() storetest.Programs {
	return storetest.Programs{"work": workOn}
}

// toughOptions are those of a queue whose processes are killed.
func toughOptions() jobs.QueueOptions {
	return jobs.QueueOptions{Workers: 8, PerPlugin: 1024, Lease: 2 * time.Second}
}

// workOn adds jobs and works on them until it is killed. It prints the name of each
// job that was taken. What is begun is written to a file.
func workOn(ctx context.Context, dsn, path string) error {
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{Schema: schema.Current(), LockTimeout: time.Minute})
	if err != nil {
		return err
	}
	q, err := jobqueue.Open(db, toughOptions())
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make([]error, 5)
	group.Go(func() { errs[0] = q.Serve(ctx, noting(path)) })
	for n := range 4 {
		group.Go(func() {
			for i := 0; errs[n+1] == nil; i++ {
				name := fmt.Sprintf("%d-%d-%d", os.Getpid(), n, i)
				switch err := q.Add(ctx, named(name)); {
				case err == nil:
					fmt.Println(name)
				case phases.CodeOf(err) == phases.CauseOverloaded:
				default:
					errs[n+1] = err
				}
			}
		})
	}
	group.Wait()
	return fmt.Errorf("it ended: %v", errs)
}

// named is a job that knows its name.
func named(name string) jobs.Job {
	return jobs.Job{
		Kind: "k", Plugin: "p", Context: phases.Context{WorkspaceID: "w"},
		Payload: json.RawMessage(`"` + name + `"`), IdempotencyKey: name, Attempts: 20,
	}
}

// once says whether a job must not be repeated: every other one.
func once(name string) bool { return (name[len(name)-1]-'0')%2 == 1 }

// noting is work that writes to a file what it begins, and takes a while.
func noting(path string) func(context.Context, jobs.Attempt) jobs.Result {
	return func(ctx context.Context, a jobs.Attempt) jobs.Result {
		if once(a.Job.IdempotencyKey) {
			if err := a.Begin(ctx); err != nil {
				return jobs.Result{Action: jobs.Requeue, Err: err}
			}
		}
		if err := note(path, fmt.Sprintf("%s %d\n", a.Job.IdempotencyKey, a.Number)); err != nil {
			return jobs.Result{Action: jobs.Retry, Err: err}
		}
		select {
		case <-time.After(rand.N(5 * time.Millisecond)):
			return jobs.Result{Action: jobs.Done}
		case <-ctx.Done():
			return jobs.Result{Action: jobs.Requeue, Err: context.Cause(ctx)}
		}
	}
}

// note appends a line to a file, in one piece.
func note(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(line); err != nil {
		return err
	}
	return file.Close()
}
