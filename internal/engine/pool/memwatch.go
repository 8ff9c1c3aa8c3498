package pool

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
)

const (
	// lookEvery is the pause between two looks; the first one comes sooner, so that a status shows something.
	lookEvery  = time.Second
	firstLook  = 250 * time.Millisecond
	lookShare  = 10 // Looks take at most a share of one processor, and come at least so often
	lookLatest = 5 * time.Second
)

// memwatch watches the memory of plugins' processes with all their descendants, and ends those that hold too much.
type memwatch struct {
	woken chan struct{} // woken gets a value when a process has begun

	mu      sync.Mutex
	running map[*proc.Process]string // with their plugins
}

func newMemwatch() *memwatch {
	return &memwatch{woken: make(chan struct{}, 1), running: map[*proc.Process]string{}}
}

func (w *memwatch) add(plugin string, p *proc.Process) {
	w.mu.Lock()
	w.running[p] = plugin
	w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default: // it is awake
	}
}

func (w *memwatch) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		}
		for pause := firstLook; len(w.living()) > 0; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			begin := time.Now()
			if !w.look() {
				return // this system cannot measure
			}
			pause = pauseAfter(time.Since(begin))
		}
	}
}

func pauseAfter(took time.Duration) time.Duration {
	return min(max(lookEvery, lookShare*took), lookLatest)
}

// living lists the processes that run, and forgets the others.
func (w *memwatch) living() []*proc.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*proc.Process
	for p := range w.running {
		select {
		case <-p.Done():
			delete(w.running, p)
		default:
			list = append(list, p)
		}
	}
	return list
}

// look measures all processes and ends those that hold too much. It reports whether this system can measure.
func (w *memwatch) look() bool {
	list := w.living()
	if _, ok := proc.Measure(list); !ok {
		return false
	}
	for _, p := range list {
		p.EnforceMemory()
	}
	return true
}

// held sums up what the running processes of each plugin held when last measured.
func (w *memwatch) held() map[string]int64 {
	list := w.living()
	proc.Measure(slices.DeleteFunc(slices.Clone(list), func(p *proc.Process) bool { return p.Held() > 0 }))
	w.mu.Lock()
	defer w.mu.Unlock()
	sums := map[string]int64{}
	for _, p := range list {
		if plugin, running := w.running[p]; running && p.Held() > 0 {
			sums[plugin] += p.Held()
		}
	}
	return sums
}
