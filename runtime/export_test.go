package runtime

import (
	"math/rand/v2"
	"time"
)

// NewMemoryQueue is the queue of an engine that is given none.
func NewMemoryQueue() Queue { return newMemoryQueue(rand.Float64, func(Job, error) {}) }

// HoldSlots makes starts keep their slots for a given time, or until they end.
func (o *Options) HoldSlots(d time.Duration) { o.slotHold = d }

// StartsAtOnce is how many starts there may be at a time.
const StartsAtOnce = startsAtOnce

// MaxWaiting is how many calls may wait for a plugin.
const MaxWaiting = maxWaiting

// WaitingToStart is how many starts wait for a slot.
func (e *Engine) WaitingToStart() int { return e.gate.Waiting() }

// StopCounting makes the engine count nothing more of its hooks and plugins.
func (e *Engine) StopCounting() { e.tally.known.Store(&counted{}) }
