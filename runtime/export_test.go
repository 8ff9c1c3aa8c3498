package runtime

import (
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/stats"
)

// MaxWaiting is how many calls may wait for a plugin.
const MaxWaiting = pool.MaxWaiting

// StopCounting makes the engine count nothing more of its hooks and plugins.
func (e *Engine) StopCounting() { e.stats = stats.New(e.table, e.opts.Now) }
