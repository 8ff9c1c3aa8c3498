package jobqueue

import (
	"log/slog"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Options say how a queue works. The zero value is right for most.
type Options struct {
	// Workers is how many jobs this process works on at once; zero is 4.
	Workers int
	// Waiting is how many jobs may wait in the database; zero is 1,024.
	Waiting int
	// PerPlugin is how many of them may be one plugin's; zero is a quarter.
	PerPlugin int
	// Lease is how long a job belongs to a process that says nothing more; zero is
	// a minute. It is renewed four times as often. Engines that share a database
	// need the same one.
	Lease time.Duration
	// KeepDone is how long idempotency keys of finished jobs are remembered; zero
	// is a day.
	KeepDone time.Duration
	// KeepDead is how long dead jobs are kept; zero is 30 days.
	KeepDead time.Duration
	// Poll is how often an engine looks for work that nobody has told it of; zero
	// is 100 ms on SQLite, where no other process can tell, and 250 ms on PostgreSQL.
	Poll time.Duration
	// Schema is PostgreSQL's schema of the queue's tables, which is created if this
	// user may. Empty is "grapnel_queue", or "grapnel_queue_X" where the store is in
	// another schema X than public.
	Schema string
	// MaxConns bounds the queue's own connections to PostgreSQL; zero is 4.
	MaxConns int
	// Logger is told what goes wrong; nil discards it.
	Logger *slog.Logger
	// Random gives numbers in [0, 1) for the jitter of waits; nil is math/rand.
	Random func() float64

	_ struct{}
}

const (
	// shortestLease leaves a renewal time to be late.
	shortestLease = 400 * time.Millisecond
	// shortestPoll is River's.
	shortestPoll = 5 * time.Millisecond
	// maxSchema is what River's names of channels leave.
	maxSchema = 40
)

// schemaName is what needs no quotes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

func (o Options) withDefaults(kind sqldb.Kind) Options {
	poll := 100 * time.Millisecond
	if kind == sqldb.Postgres {
		poll = 250 * time.Millisecond
	}
	o.Workers = or(o.Workers, 4)
	o.Waiting = or(o.Waiting, 1024)
	o.PerPlugin = or(o.PerPlugin, max(o.Waiting/4, 1))
	o.Lease = or(o.Lease, time.Minute)
	o.KeepDone = or(o.KeepDone, 24*time.Hour)
	o.KeepDead = or(o.KeepDead, 30*24*time.Hour)
	o.Poll = or(o.Poll, poll)
	o.MaxConns = or(o.MaxConns, 4)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// check refuses what makes no sense.
func (o Options) check() error {
	switch {
	case o.Workers < 1 || o.Workers > 1000:
		return badOption("Workers is %d; take 1 to 1,000", o.Workers)
	case o.Waiting < 1 || o.PerPlugin < 1:
		return badOption("Waiting is %d and PerPlugin %d; take 1 or more", o.Waiting, o.PerPlugin)
	case o.Lease < shortestLease:
		return badOption("Lease is %s; take %s or more", o.Lease, shortestLease)
	case o.KeepDone < 0 || o.KeepDead < 0:
		return badOption("KeepDone is %s and KeepDead %s; take more than nothing", o.KeepDone, o.KeepDead)
	case o.Poll < shortestPoll:
		return badOption("Poll is %s; take %s or more", o.Poll, shortestPoll)
	case o.Schema != "" && (len(o.Schema) > maxSchema || !schemaName.MatchString(o.Schema)):
		return badOption("Schema is %q; take up to %d of a-z, 0-9 and _, no digit first", o.Schema, maxSchema)
	case o.MaxConns < 2:
		return badOption("MaxConns is %d; River listens on one, so take 2 or more", o.MaxConns)
	}
	return nil
}

func badOption(format string, args ...any) error {
	return sqldb.Failf(sqldb.CodeInternal, "", "queue options: "+format, args...)
}

// full refuses a plugin's job if too many wait.
func (o Options) full(plugin string, waiting, ofPlugin int) error {
	if waiting >= o.Waiting {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs wait already", waiting)
	}
	if ofPlugin >= o.PerPlugin {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs of %s wait already", ofPlugin, plugin)
	}
	return nil
}

// almostFull says whether callers who count at the same moment could together
// exceed a bound.
func (o Options) almostFull(waiting, ofPlugin int) bool {
	return waiting+adders >= o.Waiting || ofPlugin+adders >= o.PerPlugin
}
