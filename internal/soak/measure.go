//go:build linux

package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"time"
)

// Sample is what the host holds at one moment at which nothing goes on.
type Sample struct {
	// At is "before" the engine was there, a number of dispatches in the steady
	// state, or "closed".
	At         string  `json:"at"`
	Dispatches uint64  `json:"dispatches"`
	Seconds    float64 `json:"seconds"`
	// HeapBytes is what lives on the heap after a collection; RSSBytes is the
	// resident memory of the host alone.
	HeapBytes   int64 `json:"heap_bytes"`
	RSSBytes    int64 `json:"rss_bytes"`
	Descriptors int   `json:"descriptors"`
	Goroutines  int   `json:"goroutines"`
	// Processes are those of plugins, of what they have started, and zombies.
	Processes int `json:"processes"`
}

// count reads the figures as they are.
func count() (Sample, error) {
	var s Sample
	rss, errRSS := resident()
	fds, errFDs := os.ReadDir("/proc/self/fd")
	processes, errProcesses := processes()
	if err := errors.Join(errRSS, errFDs, errProcesses); err != nil {
		return s, err
	}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	s.HeapBytes = int64(m.HeapAlloc) //nolint:gosec // no heap is that large
	s.RSSBytes, s.Goroutines, s.Processes = rss, goruntime.NumGoroutine(), processes
	s.Descriptors = len(fds) - 1 // without the one that lists them
	return s, nil
}

// resident is the resident memory of this process.
func resident() (int64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm holds %q", statm)
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// processes counts living processes with the mark of this host, and children of
// it that nobody has reaped.
func processes() (int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	mark := fmt.Appendf(nil, "GRAPNEL_MARK=%d.", os.Getpid())
	zombie := fmt.Appendf(nil, ") Z %d ", os.Getpid())
	n := 0
	for _, dir := range dirs {
		// What cannot be read has gone, or is another user's.
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		if bytes.Contains(env, mark) || bytes.Contains(stat, zombie) {
			n++
		}
	}
	return n, nil
}

// settleTime bounds the wait for what ends by itself: old configurations are
// drained, and processes that do not listen are killed.
const settleTime = 15 * time.Second

// settled counts once nothing changes any more and there are no more processes
// than wanted. What has not gone by then is what is looked for.
func settled(ctx context.Context, processes int) (Sample, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	var last Sample
	for same := 0; ; {
		goruntime.GC() // twice: the first one empties pools half-way
		goruntime.GC()
		now, err := count()
		if err != nil {
			return now, err
		}
		if now.Descriptors == last.Descriptors && now.Goroutines == last.Goroutines && now.Processes <= processes {
			same++
		} else {
			same = 0
		}
		if last = now; same >= 5 || time.Since(begin) > settleTime {
			return now, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}
