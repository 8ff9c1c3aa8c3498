package main

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/runtime"
)

// lockedBuffer is written by a timer and read by the test: synctest orders the two, but gives
// the race detector no edge from a read to a timer that fires later.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestProgress reads the line of long work from a terminal.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		var line atomic.Pointer[string]
		line.Store(new("a"))
		stop := drawProgress(&out, func() string { return *line.Load() })
		time.Sleep(progressAfter - time.Millisecond)
		synctest.Wait()
		if got := out.String(); got != "" {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(time.Second)
		line.Store(new("b"))
		time.Sleep(time.Second)
		stop()
		stop()
		time.Sleep(time.Second)
		const drawn = "\r\x1b[Ka\r\x1b[Kb\r\x1b[K"
		if got := out.String(); got != drawn {
			t.Errorf("got %q, want %q", got, drawn)
		}
		drawProgress(&out, func() string { return "never" })()
		if got := out.String(); got != drawn {
			t.Errorf("stopped at once: %q", got)
		}
	})
}

// TestStarting plays the events of plugins that start.
func TestStarting(t *testing.T) {
	t.Parallel()

	s := &starting{waiting: map[string]bool{}}
	for _, tt := range []struct{ plugin, state, want string }{
		{"b", "starting", "starting plugins: b"},
		{"a", "declared", "starting plugins: a and 1 more"},
		{"b", "ready", "starting plugins: a"},
		{"a", "quarantined", ""},
	} {
		s.event(runtime.Event{Kind: runtime.EventPlugin, Plugin: tt.plugin, State: tt.state})
		s.event(runtime.Event{Kind: runtime.EventLog, Plugin: "c", State: "starting"})
		if got := s.line(); got != tt.want {
			t.Errorf("%s is %s: %q, want %q", tt.plugin, tt.state, got, tt.want)
		}
	}
}

// TestNoProgressWithoutTerminal keeps pipes clean.
func TestNoProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := (&app{err: &out}).startCount("%s done")
		c.add()
		time.Sleep(time.Second)
		if c.stop(); out.Len() > 0 {
			t.Errorf("got %q", out.String())
		}
	})
}
