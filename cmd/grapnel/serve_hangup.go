package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// hangups are the signals by which operators have files read again.
type hangups struct{ arrived chan os.Signal }

// listenForHangups begins to take them: the first one would end the process else.
func listenForHangups() *hangups {
	h := &hangups{make(chan os.Signal, 1)}
	signal.Notify(h.arrived, syscall.SIGHUP)
	return h
}

// stop takes no more of them.
func (h *hangups) stop() { signal.Stop(h.arrived) }

// each calls do for each signal, until what it returns is called. That waits for
// do.
func (h *hangups) each(do func()) (end func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-h.arrived:
				do()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
