package runtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
)

// How often plugins' memory is looked at.
const (
	// lookEvery is the pause between two looks.
	lookEvery = time.Second
	// firstLook is the pause before the first one, so that a status shows something
	// soon.
	firstLook = 250 * time.Millisecond
	// lookShare and lookLatest bound the looks on a machine with very many processes:
	// they take at most a tenth of one processor, and come at least so often.
	lookShare  = 10
	lookLatest = 5 * time.Second
)

// memwatch looks at what plugins' processes hold, with all their descendants,
// and ends those that hold more than they may. While nothing runs it does nothing.
type memwatch struct {
	// woken is told of processes that have begun.
	woken chan struct{}

	mu      sync.Mutex
	running map[*proc.Process]*watched
}

// watched is one process as it was last seen.
type watched struct {
	plugin string
	held   int64
}

func newMemwatch() *memwatch {
	return &memwatch{woken: make(chan struct{}, 1), running: map[*proc.Process]*watched{}}
}

// add has a process of a plugin looked at until it ends.
func (w *memwatch) add(plugin string, p *proc.Process) {
	w.mu.Lock()
	w.running[p] = &watched{plugin: plugin}
	w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default: // it is awake
	}
}

// serve looks until ctx ends.
func (w *memwatch) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		}
		for pause := firstLook; len(w.living()) > 0; {
			if !rest(ctx, pause) {
				return
			}
			begin := time.Now()
			if !w.look() {
				return // this system does not tell
			}
			pause = pauseAfter(time.Since(begin))
		}
	}
}

// pauseAfter is the pause after a look.
func pauseAfter(took time.Duration) time.Duration {
	return min(max(lookEvery, lookShare*took), lookLatest)
}

// rest waits, and reports whether ctx has not ended meanwhile.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
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

// look measures all processes and ends those that hold too much. It reports
// whether this system can measure at all.
func (w *memwatch) look() bool {
	list := w.living()
	if !w.measure(list) {
		return false
	}
	for _, p := range list {
		p.EnforceMemory()
	}
	return true
}

// measure notes what processes hold now.
func (w *memwatch) measure(list []*proc.Process) bool {
	usages, ok := proc.Measure(list)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range list {
		if r := w.running[p]; r != nil {
			r.held = usages[i].RSS
		}
	}
	return true
}

// unseen are those of the list that nobody has looked at yet.
func (w *memwatch) unseen(list []*proc.Process) []*proc.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(list), func(p *proc.Process) bool { return w.running[p] == nil || w.running[p].held > 0 })
}

// held sums up what the running processes of each plugin were last seen to hold.
func (w *memwatch) held() map[string]int64 {
	list := w.living()
	if young := w.unseen(list); len(young) > 0 {
		w.measure(young) // where that cannot be, there is nothing to tell
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sums := map[string]int64{}
	for _, p := range list {
		if r := w.running[p]; r != nil && r.held > 0 {
			sums[r.plugin] += r.held
		}
	}
	return sums
}

// Memory returns what the processes of each plugin hold, with all that they have
// started, in bytes of resident memory, by declared name. It was measured within
// the last second or so. Plugins without a process are absent, and so are all on a
// system that does not tell.
func (e *Engine) Memory() map[string]int64 { return e.memwatch.held() }
