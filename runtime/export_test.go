package runtime

import "github.com/grapnelhq/grapnel/internal/engine/pool"

// MaxWaiting is how many calls may wait for a plugin.
const MaxWaiting = pool.MaxWaiting
