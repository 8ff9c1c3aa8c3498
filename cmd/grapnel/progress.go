package main

import (
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// progressAfter is how long a start may take before anything is shown.
const progressAfter = 300 * time.Millisecond

// progress shows on a terminal which plugins are still starting, if that takes
// long. It writes to standard error and clears its line at the end.
type progress struct {
	out   io.Writer
	timer *time.Timer

	mu      sync.Mutex
	waiting map[string]bool
	shown   bool
	over    bool
}

// startProgress begins to listen to the engine's events. Where standard error is
// no terminal nothing is ever shown.
func (a *app) startProgress(o *runtime.Options) *progress {
	p := &progress{out: a.err, waiting: map[string]bool{}}
	if !isTerminal(a.err) {
		p.over = true
		return p
	}
	p.timer = time.AfterFunc(progressAfter, p.show)
	others := o.OnEvent
	o.OnEvent = func(ev runtime.Event) {
		p.event(ev)
		if others != nil {
			others(ev)
		}
	}
	return p
}

// event notes who is starting.
func (p *progress) event(ev runtime.Event) {
	if ev.Kind != runtime.EventPlugin {
		return
	}
	p.mu.Lock()
	switch phases.PluginState(ev.State) {
	case phases.PluginDeclared, phases.PluginStarting:
		p.waiting[ev.Plugin] = true
	default:
		delete(p.waiting, ev.Plugin)
	}
	shown := p.shown
	p.mu.Unlock()
	if shown {
		p.show()
	}
}

// show draws the line anew.
func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || len(p.waiting) == 0 {
		return
	}
	p.shown = true
	names := slices.Sorted(maps.Keys(p.waiting))
	tellf(p.out, "\r\x1b[Kstarting plugins: %s", names[0])
	if more := len(names) - 1; more > 0 {
		tellf(p.out, " and %d more", more)
	}
}

// stop clears the line.
func (p *progress) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		tellf(p.out, "\r\x1b[K")
	}
	p.over = true
}

// isTerminal reports whether w is a character device.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
