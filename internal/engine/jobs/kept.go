package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// QueueOptions configure a queue in a store. The zero value is right for most.
type QueueOptions struct {
	// Workers is how many jobs this process works on at once; zero is 4.
	Workers int
	// Waiting is how many jobs may wait in the database; zero is 1,024.
	Waiting int
	// PerPlugin is how many of them may be one plugin's; zero is a quarter.
	PerPlugin int
	// Lease is how long a job belongs to a process that does not renew it; zero is a minute.
	// Engines that share a database need the same.
	Lease time.Duration
	// KeepDone is how long idempotency keys of finished jobs are remembered; zero is a day.
	KeepDone time.Duration
	// KeepDead is how long dead jobs are kept; zero is 30 days.
	KeepDead time.Duration
	// Logger is nil for none.
	Logger *slog.Logger

	_ struct{}
}

// State is the state of a job.
type State string

// The states of kept jobs.
const (
	StateWaiting   State = "waiting"   // due
	StateScheduled State = "scheduled" // waits for its time or its next attempt
	StateRunning   State = "running"
	StateDead      State = "dead" // discarded, and waits for an operator
)

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
	Job   Job
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

// Records lists and changes the jobs that a store keeps, without working on them. It is safe for concurrent use.
type Records interface {
	Counter
	// List lists jobs in the order in which they were queued.
	List(ctx context.Context, f Filter) ([]Row, error)
	// Job returns one job that is unfinished or dead; others are store.CodeNotFound.
	Job(ctx context.Context, id int64) (Row, error)
	// Retry offers dead jobs again, with all their attempts and beyond the queue's bounds. It returns the ids that were
	// dead. Interrupted jobs are repeated: the caller has decided so.
	Retry(ctx context.Context, ids ...int64) ([]int64, error)
	// Remove removes dead jobs with their idempotency keys, and returns the ids that were dead.
	Remove(ctx context.Context, ids ...int64) ([]int64, error)
}
