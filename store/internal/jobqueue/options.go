package jobqueue

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
)

// options are a queue's, without zero values.
type options jobs.QueueOptions

const (
	shortestLease = 400 * time.Millisecond // leaves time for a late renewal
	adders        = 64                     // how many callers may add jobs at once; closer to a bound than that, they add one after the other
)

func (o options) withDefaults() options {
	o.Workers = cmp.Or(o.Workers, 4)
	o.Waiting = cmp.Or(o.Waiting, 1024)
	o.PerPlugin = cmp.Or(o.PerPlugin, max(o.Waiting/4, 1))
	o.Lease = cmp.Or(o.Lease, time.Minute)
	o.KeepDone = cmp.Or(o.KeepDone, 24*time.Hour)
	o.KeepDead = cmp.Or(o.KeepDead, 30*24*time.Hour)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func (o options) check() error {
	switch {
	case o.Workers < 1 || o.Workers > 1000:
		return badOption("Workers is %d; take 1 to 1,000", o.Workers)
	case o.Waiting < 1 || o.PerPlugin < 1:
		return badOption("Waiting is %d and PerPlugin %d; take 1 or more", o.Waiting, o.PerPlugin)
	case o.Lease < shortestLease:
		return badOption("Lease is %s; take %s or more", o.Lease, shortestLease)
	case o.KeepDone < 0 || o.KeepDead < 0:
		return badOption("KeepDone is %s and KeepDead %s; take more than nothing", o.KeepDone, o.KeepDead)
	}
	return nil
}

func badOption(format string, args ...any) error {
	return sqldb.Failf(sqldb.CodeInternal, "", "queue options: "+format, args...)
}

func (o options) full(plugin string, waiting, ofPlugin int) error {
	if waiting >= o.Waiting {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs are waiting already", waiting)
	}
	if ofPlugin >= o.PerPlugin {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs of %s are waiting already", ofPlugin, plugin)
	}
	return nil
}

// almostFull reports whether concurrent callers could together exceed a bound.
func (o options) almostFull(waiting, ofPlugin int) bool {
	return waiting+adders >= o.Waiting || ofPlugin+adders >= o.PerPlugin
}
