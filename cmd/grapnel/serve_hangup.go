package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/grapnelhq/grapnel/gateway"
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

// each calls do for each signal, until ctx ends.
func (h *hangups) each(ctx context.Context, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.arrived:
			do()
		}
	}
}

// reloadWhenTold reads the gateway's files again at each signal and, where they are
// watched, at each change of them, until what it returns is called. That waits for
// a reload on its way.
func (a *app) reloadWhenTold(ctx context.Context, g *gateway.Gateway, s *serving, h *hangups) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { h.each(ctx, func() { g.Reload(ctx, gateway.ReloadSignal, "") }) })
	if s.flags.watch || s.cfg.Serve.Watch {
		files := func() []string { return a.watchedFiles(s.access.file) }
		running.Go(func() {
			watchFiles(ctx, s.looked, files, func() { g.Reload(ctx, gateway.ReloadWatch, "") })
		})
	}
	return func() {
		stop()
		running.Wait()
	}
}
