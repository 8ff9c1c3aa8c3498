package runtime

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// retireAfter is how long turns may go on with a configuration that was
// replaced.
const retireAfter = 60 * time.Second

// generation is one loaded configuration with its plugins and its plan.
type generation struct {
	number    uint64
	cfg       *config.Config
	instances []*instance
	byName    map[string]*instance
	// planned is replaced when a plugin describes itself for the first time after
	// the load.
	planned atomic.Pointer[planned]
	// dropped says that the generation is not told any more what its plugins
	// invalidate: turns that still use it have no answers from memory.
	dropped atomic.Bool
	// planning makes plans one after the other: the last one knows most.
	planning sync.Mutex

	mu    sync.Mutex
	users int
	// retired is set when another generation is in force; idle is closed when
	// the last user has gone after that.
	retired bool
	idle    chan struct{}
}

// rows is the plugins' part of the ledger.
func (g *generation) rows() []phases.PluginRow {
	rows := make([]phases.PluginRow, len(g.instances))
	for i, in := range g.instances {
		rows[i] = in.row(g.number)
	}
	return rows
}

// acquire returns the generation in force and keeps it until its leave is
// called, which the caller does exactly once. It fails on a closed engine.
func (e *Engine) acquire() (*generation, error) {
	if e.isClosed() {
		return nil, ErrClosed
	}
	return e.inForce(), nil
}

// inForce is acquire for work that goes on while the engine is being closed.
func (e *Engine) inForce() *generation {
	for {
		if g := e.current.Load(); g.enter() {
			return g
		}
	}
}

func (g *generation) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired && g.users == 0 {
		return false
	}
	g.users++
	return true
}

func (g *generation) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	if g.retired && g.users == 0 {
		close(g.idle)
	}
}

// retire waits for the last turn of a generation, bounded, and stops the plugins
// that no other generation uses.
func (e *Engine) retire(g *generation) {
	g.mu.Lock()
	g.retired = true
	if g.users == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	timer := time.NewTimer(retireAfter)
	defer timer.Stop()
	select {
	case <-g.idle:
	case <-timer.C:
	case <-e.life.Done():
		return // Close stops all plugins
	}
	g.dropped.Store(true)
	e.mu.Lock()
	e.generations = slices.DeleteFunc(e.generations, func(o *generation) bool { return o == g })
	kept := instancesOf(e.generations)
	e.mu.Unlock()
	e.forgetFigures()
	for _, in := range g.instances {
		if !slices.Contains(kept, in) {
			in.shutdown()
		}
	}
}

// instancesOf lists the instances of several generations, each once.
func instancesOf(generations []*generation) []*instance {
	var all []*instance
	for _, g := range generations {
		for _, in := range g.instances {
			if !slices.Contains(all, in) {
				all = append(all, in)
			}
		}
	}
	return all
}

// stopAll stops instances that run, all at the same time.
func stopAll(ins []*instance) {
	var wait sync.WaitGroup
	for _, in := range ins {
		wait.Go(in.shutdown)
	}
	wait.Wait()
}
