package pool

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// leftoverTries bounds the attempts to remove what a process has left: a plugin without a
// sandbox can leave what cannot be removed, at every start.
const leftoverTries = 3

// leftovers are ended processes of which something could not be removed, for instance for want of a descriptor.
// Removal is tried again at the plugin's next start and when it is stopped for good. Then directories are the next
// host's to remove; processes that may still run go to unkilled.
type leftovers struct {
	log      *slog.Logger
	unkilled func(*proc.Process, error)

	mu   sync.Mutex
	list []leftover
}

type leftover struct {
	process *proc.Process
	tries   int
}

func (l *leftovers) add(p *proc.Process, stopped error) {
	if stopped != nil {
		l.put(leftover{process: p})
	}
}

func (l *leftovers) put(left leftover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, left)
}

// clear removes what can be removed by now; the last time it gives up the rest.
func (l *leftovers) clear(last bool) {
	l.mu.Lock()
	list := l.list
	l.list = nil
	l.mu.Unlock()
	for _, left := range list {
		err := left.process.Clear()
		switch left.tries++; {
		case err == nil:
		case last || left.tries == leftoverTries:
			left.process.GiveUp()
			l.log.Warn("what a plugin left behind cannot be removed", "error", phases.Whole(err))
			if errors.Is(err, proc.ErrAlive) {
				l.unkilled(left.process, err)
			}
		default:
			l.put(left)
		}
	}
}

// unkilled are processes of stopped plugins that may still run, with the reasons.
type unkilled struct {
	mu   sync.Mutex
	list map[*proc.Process]error
}

func (u *unkilled) add(p *proc.Process, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.list == nil {
		u.list = map[*proc.Process]error{}
	}
	u.list[p] = err
}

// retry forgets those that have ended by now.
func (u *unkilled) retry() {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.list, func(p *proc.Process, _ error) bool { return !errors.Is(p.Clear(), proc.ErrAlive) })
}

func (u *unkilled) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return errors.Join(slices.Collect(maps.Values(u.list))...)
}
