package runtime

import "math/rand/v2"

// NewMemoryQueue is the queue of an engine that is given none.
func NewMemoryQueue() Queue { return newMemoryQueue(rand.Float64, func(Job, error) {}) }
