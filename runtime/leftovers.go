package runtime

import (
	"sync"

	"github.com/grapnelhq/grapnel/internal/proc"
)

// leftovers are processes that have ended and of which something could not be
// removed: a host without a free descriptor can neither find descendants nor empty a
// folder. It is tried again
// at the plugin's next start, and when it is stopped for good.
type leftovers struct {
	mu   sync.Mutex
	list []*proc.Process
}

// add notes a process, if its stop has failed.
func (l *leftovers) add(p *proc.Process, stopped error) {
	if stopped == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, p)
}

// clear removes what can be removed by now.
func (l *leftovers) clear() {
	l.mu.Lock()
	list := l.list
	l.list = nil
	l.mu.Unlock()
	for _, p := range list {
		l.add(p, p.Clear())
	}
}
