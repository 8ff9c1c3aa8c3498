package turnstate

import (
	"runtime"
	"testing"
)

// TestOpen: turns that somebody holds are there until they are removed, and those that nobody holds take no memory.
func TestOpen(t *testing.T) {
	type turn [1 << 10]byte
	var o Open[turn]
	held := make([]*turn, 10)
	for i := range held {
		held[i] = &turn{}
		o.Add(held[i])
	}
	for i := range 10 * leastSweep {
		if o.Add(&turn{}); i%leastSweep == 0 {
			runtime.GC()
		}
	}
	if n := len(o.turns); n > 4*leastSweep {
		t.Errorf("%d turns are remembered", n)
	}
	runtime.GC()
	o.Remove(held[0])
	if n := len(o.All()); n != len(held)-1 {
		t.Errorf("%d turns are open of %d that are held", n, len(held)-1)
	}
	runtime.KeepAlive(held)
}
