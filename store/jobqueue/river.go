package jobqueue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	cooldown       = time.Millisecond          // between two fetches
	notifyCooldown = 50 * time.Millisecond     // between notifications to other processes, which PostgreSQL serializes
	never          = 20 * 365 * 24 * time.Hour // until River's rescuer takes a job: our leases do that
)

type jobArgs struct {
	// River makes its unique key from Key.
	Key string `json:"key,omitempty" river:"unique"`
	// Job is JSON as text: as JSON, PostgreSQL would rewrite it, refuse some of it, and index each word.
	Job string `json:"job"`
}

// Kind implements river.JobArgs.
func (jobArgs) Kind() string { return jobKind }

// jobMeta is our metadata of a job.
type jobMeta struct {
	Plugin string `json:"plugin,omitempty"`
	// By is the process that added it.
	By string `json:"by,omitempty"`
	// Requeued is how often the job was requeued, and Why the last reason.
	Requeued int    `json:"requeued,omitempty"`
	Why      string `json:"why,omitempty"`
	// Begun is the attempt that must not be repeated; zero is none.
	Begun int `json:"begun"`
}

// attemptError is a failed attempt as River stores it, and its cause.
type attemptError struct {
	rivertype.AttemptError

	Code phases.Cause `json:"code,omitempty"`
}

// flow is a River client on one of the databases.
type flow interface {
	// insert stores a job unless too many are waiting, and reports whether its key is a duplicate.
	insert(ctx context.Context, args *jobArgs, opts *river.InsertOpts, plugin string) (duplicate bool, err error)
	// stop ends fetching and waits for running jobs, or for ctx; it can be called again.
	start(ctx context.Context) error
	stop(ctx context.Context) error
	wake()
	close()
}

type client[TTx any] struct {
	*river.Client[TTx]

	pilot *pilot
}

func (c client[TTx]) start(ctx context.Context) error {
	err := c.Start(ctx)
	if err != nil { // River refuses to start what was not stopped, even after a failure
		return errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	c.pilot.running.Store(true)
	return nil
}

func (c client[TTx]) stop(ctx context.Context) error {
	c.pilot.running.Store(false)
	return c.Stop(ctx)
}

func (c client[TTx]) wake() { c.pilot.wake() }

type worker struct {
	river.WorkerDefaults[jobArgs]

	perform func(ctx context.Context, row *rivertype.JobRow, body string)
}

// Work implements river.Worker. It returns when the result is stored.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	w.perform(ctx, job.JobRow, job.Args.Job)
	return nil
}

// pilot changes what River's client does between its services and the database.
type pilot struct {
	riverpilot.StandardPilot

	// notify makes the client fetch; its producer must be running.
	notify  func(ctx context.Context, res []*rivertype.JobInsertResult)
	running atomic.Bool
}

var _ riverpilot.Pilot = (*pilot)(nil)

// PilotInit implements riverpilot.Pilot.
func (p *pilot) PilotInit(_ *baseservice.Archetype, params *riverpilot.PilotInitParams) {
	p.notify = params.NotifyNonTxJobInsert
}

func (p *pilot) wake() {
	if p.running.Load() {
		p.notify(context.Background(), []*rivertype.JobInsertResult{{Job: &rivertype.JobRow{Queue: queueName}}})
	}
}

// JobSetStateIfRunningMany does nothing: River does not check whose attempt it ends. Results are stored before a
// worker returns; attempts without one are rescued when their lease expires.
func (p *pilot) JobSetStateIfRunningMany(context.Context, riverdriver.Executor, *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	return nil, nil
}

// JobInsertMany inserts jobs as available, even with a later time: a fetch skips them until
// then, while River's scheduler looks only every five seconds.
func (p *pilot) JobInsertMany(ctx context.Context, exec riverdriver.Executor, params *riverdriver.JobInsertFastManyParams) ([]*riverdriver.JobInsertFastResult, error) {
	for _, job := range params.Jobs {
		job.State = rivertype.JobStateAvailable
	}
	return p.StandardPilot.JobInsertMany(ctx, exec, params)
}

type executor struct {
	riverdriver.Executor

	log *slog.Logger
}

// LeaderResign does not insist: a silent leader's term ends after a few seconds, and insisting
// would delay stopping while the database is down.
func (e *executor) LeaderResign(ctx context.Context, params *riverdriver.LeaderResignParams) (bool, error) {
	resigned, err := e.Executor.LeaderResign(ctx, params)
	if err != nil {
		e.log.Debug("the queue's leader did not resign", "error", err)
	}
	return resigned, nil
}

func riverConfig(o Options, id, schema string, w *worker) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	return &river.Config{
		ID:                          id,
		Schema:                      schema,
		Logger:                      slog.New(&quietHandler{o.Logger.Handler(), &sync.Mutex{}, map[string]time.Time{}}),
		Queues:                      map[string]river.QueueConfig{queueName: {MaxWorkers: o.Workers, FetchCooldown: cooldown, FetchPollInterval: o.Poll}},
		Workers:                     workers,
		FetchCooldown:               notifyCooldown,
		FetchPollInterval:           max(o.Poll, notifyCooldown),
		JobTimeout:                  -1,
		RescueStuckJobsAfter:        never,
		CompletedJobRetentionPeriod: o.KeepDone,
		CancelledJobRetentionPeriod: o.KeepDead,
		DiscardedJobRetentionPeriod: o.KeepDead,
	}
}

// migrated reports whether River's tables are up to date. If the version cannot be read though
// the database works, they are newer than this program.
func migrated[TTx any](ctx context.Context, db *sqldb.DB, m *rivermigrate.Migrator[TTx], existing []rivermigrate.Migration, err error) (bool, error) {
	if err == nil {
		return len(existing) == len(m.AllVersions()), nil
	}
	if e, ok := errors.AsType[*sqldb.Error](db.Fail(ctx, "opening the queue", err)); !ok || e.Code != sqldb.CodeInternal {
		return false, err
	}
	return false, &sqldb.Error{
		Code: sqldb.CodeSchema, Message: "the queue's tables are not those that this program knows", Err: err,
		Hint: "use the version that wrote them, or a newer one",
	}
}

const (
	repeatAfter = 10 * time.Second // until a message of River's is logged again
	maxSeen     = 500              // remembered messages; some contain the text of a failure
)

// quietHandler logs River's messages once in a while and a level lower: River repeats itself
// many times a second while a database is down.
type quietHandler struct {
	slog.Handler

	mu   *sync.Mutex
	last map[string]time.Time // when a message was logged; derived handlers share it
}

func lower(l slog.Level) slog.Level { return l - (slog.LevelWarn - slog.LevelInfo) }

// Enabled implements slog.Handler.
func (q *quietHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, lower(l))
}

// Handle implements slog.Handler.
func (q *quietHandler) Handle(ctx context.Context, r slog.Record) error {
	q.mu.Lock()
	last, known := q.last[r.Message]
	due := !known || r.Time.Sub(last) >= repeatAfter
	if due {
		if len(q.last) >= maxSeen {
			clear(q.last)
		}
		q.last[r.Message] = r.Time
	}
	q.mu.Unlock()
	if !due {
		return nil
	}
	r.Level = lower(r.Level)
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q *quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quietHandler{q.Handler.WithAttrs(attrs), q.mu, q.last}
}

// WithGroup implements slog.Handler.
func (q *quietHandler) WithGroup(name string) slog.Handler {
	return &quietHandler{q.Handler.WithGroup(name), q.mu, q.last}
}
