package runtime

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// leftoverTries is how often the removal of what a process has left is tried again
// before it is given up: a plugin outside of a sandbox can leave what nobody removes,
// and leave it at every start.
const leftoverTries = 3

// leftovers are processes that have ended and of which something could not be
// removed: a host without a free descriptor can neither find descendants nor empty a
// folder. It is tried again at the plugin's next start, and when it is stopped for
// good. Folders that are given up are the next host's to remove; processes that may
// still run are looked for again when the engine is closed, which reports them.
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

// add notes a process, if its stop has failed.
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

// clear removes what can be removed by now. The last time, nothing is kept for another
// one. Processes that may still run are handed to unkilled.
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
			l.log.Warn("what a plugin has left cannot be removed", "error", phases.Whole(err))
			if errors.Is(err, proc.ErrAlive) {
				l.unkilled(left.process, err)
			}
		default:
			l.put(left)
		}
	}
}

// unkilled are processes of stopped plugins of which something may still run, with
// the reasons.
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

// err names what may still run.
func (u *unkilled) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return errors.Join(slices.Collect(maps.Values(u.list))...)
}
