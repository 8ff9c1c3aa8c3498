package background

import (
	"math/rand/v2"
	"testing"

	"github.com/grapnelhq/grapnel/internal/queuetest"
	"github.com/grapnelhq/grapnel/jobs"
)

// TestMemoryQueue: the queue of an engine without a store passes the suite of those
// that store jobs.
func TestMemoryQueue(t *testing.T) {
	t.Parallel()

	queuetest.Suite(t, func(*testing.T) jobs.Queue { return newMemoryQueue(rand.Float64, func(jobs.Job, error) {}) })
}
