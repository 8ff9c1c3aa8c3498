package main

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
