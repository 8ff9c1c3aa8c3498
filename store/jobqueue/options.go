package jobqueue

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
)

// Options configure a queue. The zero value is right for most.
type Options struct {
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
	// Poll is how often an engine looks for jobs that another process has added; zero is 100 ms.
	Poll time.Duration
	// Logger is nil for none.
	Logger *slog.Logger
	// Random gives numbers in [0, 1) for the jitter of waits; nil is math/rand.
	Random func() float64

	_ struct{}
}

const (
	shortestLease = 400 * time.Millisecond // leaves time for a late renewal
	shortestPoll  = 5 * time.Millisecond
	adders        = 64 // how many callers may add jobs at once; closer to a bound than that, they add one after the other
)

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, 4)
	o.Waiting = cmp.Or(o.Waiting, 1024)
	o.PerPlugin = cmp.Or(o.PerPlugin, max(o.Waiting/4, 1))
	o.Lease = cmp.Or(o.Lease, time.Minute)
	o.KeepDone = cmp.Or(o.KeepDone, 24*time.Hour)
	o.KeepDead = cmp.Or(o.KeepDead, 30*24*time.Hour)
	o.Poll = cmp.Or(o.Poll, 100*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

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
	}
	return nil
}

func badOption(format string, args ...any) error {
	return sqldb.Failf(sqldb.CodeInternal, "", "queue options: "+format, args...)
}

func (o Options) full(plugin string, waiting, ofPlugin int) error {
	if waiting >= o.Waiting {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs are waiting already", waiting)
	}
	if ofPlugin >= o.PerPlugin {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs of %s are waiting already", ofPlugin, plugin)
	}
	return nil
}

// almostFull reports whether concurrent callers could together exceed a bound.
func (o Options) almostFull(waiting, ofPlugin int) bool {
	return waiting+adders >= o.Waiting || ofPlugin+adders >= o.PerPlugin
}
