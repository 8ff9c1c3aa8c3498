package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Long work shows its progress after progressAfter, and draws it again every progressEvery.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// startProgress shows a line on a terminal until stop is called. line may be called at any time.
func (a *app) startProgress(line func() string) (stop func()) {
	if !isTerminal(a.err) {
		return func() {}
	}
	return drawProgress(a.err, line)
}

func drawProgress(out io.Writer, line func() string) (stop func()) {
	const wipe = "\r\x1b[K"
	var last string
	end := repeat(progressAfter, func() {
		if now := line(); now != last {
			reportf(out, wipe+"%s", now)
			last = now
		}
	})
	return func() {
		end()
		if last != "" {
			reportf(out, wipe)
			last = ""
		}
	}
}

// reportProgress prints values as JSON lines until stop is called, which prints the last. If nobody reads them, it calls unread.
func reportProgress(out io.Writer, value func() any, unread func()) (stop func()) {
	report := func() {
		if err := json.NewEncoder(out).Encode(value()); err != nil {
			unread()
		}
	}
	end := repeat(progressEvery, report)
	return func() {
		end()
		report()
	}
}

// repeat calls f after a while, and then every progressEvery until stop is called, which waits for it.
func repeat(first time.Duration, f func()) (stop func()) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for wait := first; ; wait = progressEvery {
			select {
			case <-time.After(wait):
				f()
			case <-ended:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		running.Wait()
	})
}

// counter shows how much long work has done.
type counter struct {
	atomic.Int64

	stop func()
}

func (c *counter) add() { c.Add(1) }

// startCount begins a count; format has a place for it.
func (a *app) startCount(format string) *counter {
	c := &counter{}
	c.stop = a.startProgress(func() string { return fmt.Sprintf(format, text.Thousands(int(c.Load()))) })
	return c
}

// starting are the plugins that are still starting.
type starting struct {
	mu      sync.Mutex
	waiting map[string]bool
}

// showStarting shows them until stop is called.
func (a *app) showStarting(o *runtime.Options) (stop func()) {
	s := &starting{waiting: map[string]bool{}}
	others := o.OnEvent
	o.OnEvent = func(ev runtime.Event) {
		s.event(ev)
		if others != nil {
			others(ev)
		}
	}
	if isTerminal(a.err) {
		return a.startProgress(s.line)
	}
	late := time.AfterFunc(lateAfter, func() {
		if line := s.line(); line != "" {
			reportf(a.err, "grapnel: still %s\n", line)
		}
	})
	return func() { late.Stop() }
}

// lateAfter is when a plugin that has not answered at its start is announced where there is no terminal.
// Tests under the race detector set it.
var lateAfter = time.Second //nolint:gochecknoglobals // a constant of the program

func (s *starting) event(ev runtime.Event) {
	if ev.Kind != runtime.EventPlugin {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := phases.PluginState(ev.State); state == phases.PluginDeclared || state == phases.PluginStarting {
		s.waiting[ev.Plugin] = true
	} else {
		delete(s.waiting, ev.Plugin)
	}
}

func (s *starting) line() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch names := slices.Sorted(maps.Keys(s.waiting)); len(names) {
	case 0:
		return ""
	case 1:
		return "starting plugins: " + names[0]
	default:
		return fmt.Sprintf("starting plugins: %s and %d more", names[0], len(names)-1)
	}
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
