package runtime

import (
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/stats"
)

// HoldSlots makes starts keep their slots for a given time, or until they end.
func (o *Options) HoldSlots(d time.Duration) { o.slotHold = d }

// StartsAtOnce is how many starts there may be at a time.
const StartsAtOnce = pool.StartsAtOnce

// MaxWaiting is how many calls may wait for a plugin.
const MaxWaiting = pool.MaxWaiting

// WaitingToStart is how many starts wait for a slot.
func (e *Engine) WaitingToStart() int { return e.pool.Waiting() }

// StopCounting makes the engine count nothing more of its hooks and plugins.
func (e *Engine) StopCounting() { e.stats = stats.New(e.table, e.opts.Now) }
