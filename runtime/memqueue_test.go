package runtime_test

import (
	"testing"

	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/runtime/queuetest"
)

// TestMemoryQueue: the queue of an engine without a store is one like those that keep
// jobs.
func TestMemoryQueue(t *testing.T) {
	t.Parallel()

	queuetest.Suite(t, func(*testing.T) runtime.Queue { return runtime.NewMemoryQueue() })
}
