package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/phases"
)

// jobCommands are the commands of scripts about background work.
func jobCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"queue": cmdQueue}
}

// errJobsQueued ends the service of cmdQueue.
var errJobsQueued = errors.New("all jobs are where they are to be")

// cmdQueue is "queue DB PLUGIN:KIND=STATE...": jobs in a store, which are scheduled,
// or dead by a cause (dead/CAUSE), and then those that wait. A KIND with a dot is the
// phase of a hook. The first job has the id 1.
func cmdQueue(ts *testscript.TestScript, _ bool, args []string) {
	ctx, s := context.Background(), openLog(ts, args[0])
	q, err := s.Queue(jobs.QueueOptions{})
	ts.Check(err)
	causes := map[string]phases.Cause{}
	var waiting []jobs.Job
	for _, arg := range args[1:] {
		name, state, _ := strings.Cut(arg, "=")
		j := scriptJob(name)
		switch cause, dead := strings.CutPrefix(state, "dead/"); {
		case dead:
			causes[j.IdempotencyKey] = phases.Cause(cause)
		case state == "scheduled":
			j.NotBefore = time.Now().Add(3*time.Hour + time.Minute)
		default:
			waiting = append(waiting, j)
			continue
		}
		ts.Check(q.Add(ctx, j))
	}
	serving, end := context.WithCancelCause(ctx)
	served := make(chan error, 1)
	go func() {
		served <- q.Serve(serving, func(_ context.Context, a jobs.Attempt) jobs.Result {
			return jobs.Result{Action: jobs.Discard, Err: phases.Errorf(causes[a.Job.IdempotencyKey], "it was told to fail")}
		})
	}()
	ts.Check(q.Idle(ctx))
	end(errJobsQueued)
	if err := <-served; !errors.Is(err, errJobsQueued) {
		ts.Check(err)
	}
	for _, j := range waiting {
		ts.Check(q.Add(ctx, j))
	}
	ts.Check(s.Close())
}

// scriptJob is a job of the name PLUGIN:KIND.
func scriptJob(name string) jobs.Job {
	plugin, kind, _ := strings.Cut(name, ":")
	j := jobs.Job{
		Kind: kind, Plugin: plugin, Subscription: plugin + ".ask", Payload: []byte(`{"text":"a user's secret"}`),
		Context: phases.Context{WorkspaceID: "acme", ThreadID: "t1", TurnID: "turn-1"}, IdempotencyKey: "key of " + name,
		Policies: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: []byte(`"another secret"`)}},
	}
	if strings.Contains(kind, ".") {
		j.Kind, j.Phase, j.Subscription = "", phases.Phase(kind), plugin+".observe"
	}
	return j
}
