package runtime

import (
	"context"

	"github.com/grapnelhq/grapnel/internal/engine/pool"
)

// MaxWaiting is how many calls may wait for a plugin.
const MaxWaiting = pool.MaxWaiting

// LoseFacts makes the deriving of facts fail, as on a file system that hangs.
func LoseFacts(ctx context.Context, e *Engine) error { return e.facts.Close(ctx) }
