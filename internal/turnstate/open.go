package turnstate

import (
	"maps"
	"slices"
	"sync"
)

// Open are the turns that have begun and not ended. The zero value is empty. It is safe for concurrent use.
type Open[T any] struct {
	mu    sync.Mutex
	turns map[*T]struct{}
}

// Add adds a turn.
func (o *Open[T]) Add(t *T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turns == nil {
		o.turns = map[*T]struct{}{}
	}
	o.turns[t] = struct{}{}
}

// Remove removes a turn.
func (o *Open[T]) Remove(t *T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.turns, t)
}

// All are the turns that are there.
func (o *Open[T]) All() []*T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.turns))
}
