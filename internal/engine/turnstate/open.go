package turnstate

import (
	"maps"
	"sync"
	"weak"
)

// Open are the turns that have begun and not ended. A turn that nobody else holds any more is forgotten: a host that
// does not end its turns must not fill the memory. The zero value is empty. It is safe for concurrent use.
type Open[T any] struct {
	mu    sync.Mutex
	turns map[weak.Pointer[T]]struct{}
	// sweep is at how many turns those that are gone are taken out.
	sweep int
}

const leastSweep = 1024

// Add adds a turn.
func (o *Open[T]) Add(t *T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turns == nil {
		o.turns, o.sweep = map[weak.Pointer[T]]struct{}{}, leastSweep
	}
	if len(o.turns) >= o.sweep {
		maps.DeleteFunc(o.turns, func(p weak.Pointer[T], _ struct{}) bool { return p.Value() == nil })
		o.sweep = max(leastSweep, 2*len(o.turns))
	}
	o.turns[weak.Make(t)] = struct{}{}
}

// Remove removes a turn.
func (o *Open[T]) Remove(t *T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.turns, weak.Make(t))
}

// All are the turns that are there.
func (o *Open[T]) All() []*T {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []*T
	for p := range o.turns {
		if t := p.Value(); t != nil {
			all = append(all, t)
		}
	}
	return all
}
