package jobqueue

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	// cooldown is the shortest time between two looks for work.
	cooldown = time.Millisecond
	// telling is the shortest time between two notices to other processes, which
	// PostgreSQL sends one after the other, whoever's they are.
	telling = 50 * time.Millisecond
	// soonTime is how far ahead jobs are offered to those who look for work, who
	// take none before its time. River's scheduler looks every five seconds, which
	// is too coarse for short waits.
	soonTime = 10 * time.Second
	// never is how long after its attempt began River would take a job away: our
	// leases do that.
	never = 20 * 365 * 24 * time.Hour
)

// jobArgs is a job as River keeps it.
type jobArgs struct {
	// Key is the job's key; River makes its unique key of it.
	Key string `json:"key,omitempty" river:"unique"`
	// Job is the job in JSON, as text: PostgreSQL would rewrite it otherwise, refuse
	// some of it, and put each of its words into an index.
	Job string `json:"job"`
}

// Kind implements river.JobArgs.
func (jobArgs) Kind() string { return jobKind }

// jobMeta is what we note about a job beside it.
type jobMeta struct {
	Plugin string `json:"plugin,omitempty"`
	// Requeued is how often the job was put off, and Why the last reason.
	Requeued int    `json:"requeued,omitempty"`
	Why      string `json:"why,omitempty"`
	// Begun is the attempt that must not be repeated; zero is none.
	Begun int `json:"begun"`
}

// attemptError is a failed attempt, as River keeps it, and its cause.
type attemptError struct {
	rivertype.AttemptError

	Code phases.Cause `json:"code,omitempty"`
}

// worker is where River brings jobs.
type worker struct {
	river.WorkerDefaults[jobArgs]

	perform func(ctx context.Context, row *rivertype.JobRow, body string)
}

// Work implements river.Worker. What became of the job is stored when it returns.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	w.perform(ctx, job.JobRow, job.Args.Job)
	return nil
}

// pilot changes what River's client does between its services and the database.
type pilot struct {
	riverpilot.StandardPilot

	// due says whether it is worth looking for work; nil if one look is as good as
	// the other.
	due func(ctx context.Context) bool
	// tell makes the client look for work; its producer has to run.
	tell func(ctx context.Context, res []*rivertype.JobInsertResult)
	// running says that it does.
	running atomic.Bool
}

var _ riverpilot.Pilot = (*pilot)(nil)

// PilotInit implements riverpilot.Pilot.
func (p *pilot) PilotInit(_ *baseservice.Archetype, params *riverpilot.PilotInitParams) {
	p.tell = params.NotifyNonTxJobInsert
}

// wake makes the client look for work, if it works.
func (p *pilot) wake() {
	if p.running.Load() {
		p.tell(context.Background(), []*rivertype.JobInsertResult{{Job: &rivertype.JobRow{Queue: queueName}}})
	}
}

// JobSetStateIfRunningMany does nothing: River does not ask whose attempt it ends.
// Verdicts are stored before a worker returns, and what has none by then is
// offered again when its lease runs out.
func (p *pilot) JobSetStateIfRunningMany(context.Context, riverdriver.Executor, *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	return nil, nil
}

// JobInsertMany offers jobs of the next seconds at once.
func (p *pilot) JobInsertMany(ctx context.Context, exec riverdriver.Executor, params *riverdriver.JobInsertFastManyParams) ([]*riverdriver.JobInsertFastResult, error) {
	for _, job := range params.Jobs {
		if job.State == rivertype.JobStateScheduled && time.Until(*job.ScheduledAt) < soonTime {
			job.State = rivertype.JobStateAvailable
		}
	}
	return p.StandardPilot.JobInsertMany(ctx, exec, params)
}

// JobGetAvailable leaves the database alone where there is no work.
func (p *pilot) JobGetAvailable(
	ctx context.Context, exec riverdriver.Executor, state riverpilot.ProducerState, params *riverdriver.JobGetAvailableParams,
) ([]*rivertype.JobRow, error) {
	if p.due != nil && !p.due(ctx) {
		return nil, nil
	}
	return p.StandardPilot.JobGetAvailable(ctx, exec, state, params)
}

// executor is River's way to the database, but for what does not matter there.
type executor struct {
	riverdriver.Executor

	log *slog.Logger
}

// LeaderResign does not insist: a leader that says nothing is none after a few
// seconds, and insisting would hold up the end of a process whose database is
// away for as long.
func (e *executor) LeaderResign(ctx context.Context, params *riverdriver.LeaderResignParams) (bool, error) {
	resigned, err := e.Executor.LeaderResign(ctx, params)
	if err != nil {
		e.log.Debug("the queue's leader did not resign", "error", err)
	}
	return resigned, nil
}

// riverConfig is how River works for us.
func riverConfig(o Options, id, schema string, w *worker) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	return &river.Config{
		ID:                          id,
		Schema:                      schema,
		Logger:                      slog.New(&quiet{next: o.Logger.Handler(), said: &said{}}),
		Queues:                      map[string]river.QueueConfig{queueName: {MaxWorkers: o.Workers, FetchCooldown: cooldown, FetchPollInterval: o.Poll}},
		Workers:                     workers,
		FetchCooldown:               telling,
		FetchPollInterval:           max(o.Poll, telling),
		JobTimeout:                  -1,
		RescueStuckJobsAfter:        never,
		CompletedJobRetentionPeriod: o.KeepDone,
		CancelledJobRetentionPeriod: o.KeepDead,
		DiscardedJobRetentionPeriod: o.KeepDead,
	}
}

// insertion is a job for River.
func insertion(args *jobArgs, meta []byte, attempts int, notBefore time.Time) *river.InsertOpts {
	opts := &river.InsertOpts{Queue: queueName, MaxAttempts: attempts, Metadata: meta}
	if time.Until(notBefore) > 0 {
		opts.ScheduledAt = notBefore
	}
	if args.Key != "" {
		opts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: rivertype.JobStates()}
	}
	return opts
}
