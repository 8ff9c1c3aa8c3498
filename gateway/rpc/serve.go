package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Serve answers requests on the listeners with handler, which is [Server.Handler]
// or holds it beside others, until ctx ends or a listener fails. It closes the
// listeners. Then it stops as [Server.Shutdown] says, and returns when every
// goroutine has ended; a context that ended is no error.
func (s *Server) Serve(ctx context.Context, handler http.Handler, listeners ...net.Listener) error {
	hs := &http.Server{
		Handler:           track(handler),
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ConnContext:       withSocket,
		ReadHeaderTimeout: s.limits.Header,
		ReadTimeout:       s.limits.Read,
		WriteTimeout:      2 * s.limits.Read, // what is mounted beside; calls set their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, len(listeners))
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { failed <- hs.Serve(newDoor(s, l)) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	err = errors.Join(err, s.shutdown(context.WithoutCancel(ctx), hs))
	wg.Wait()
	return err
}

// Shutdown stops the server. New calls and connections are refused; calls in
// flight may end, in all but a fifth of [Limits.Drain], then their contexts end.
// Each WebSocket connection is closed with the status 1001 as soon as nothing of
// it is in flight. It returns when all connections have ended, or with an error
// when calls have not at the end of that time. Only Serve waits for POSTs too.
func (s *Server) Shutdown(ctx context.Context) error { return s.shutdown(ctx, nil) }

// shutdown is Shutdown, together with an HTTP server, if there is one.
func (s *Server) shutdown(ctx context.Context, hs *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Drain)
	defer cancel()
	patience, cancelPatience := context.WithTimeout(ctx, s.limits.Drain*4/5)
	defer cancelPatience()
	s.drain()
	if hs != nil {
		_ = hs.Shutdown(patience) // what is left then is cut off below
	}
	ended := make(chan struct{})
	go func() {
		s.inFlight.Wait()
		s.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-patience.Done():
		s.log.Warn("calls in flight are cut short")
		s.cut()
	}
	s.stop(ErrClosed)
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = fmt.Errorf("rpc: stopping: calls have not ended: %w", ctx.Err())
	}
	if hs != nil {
		err = errors.Join(err, hs.Close())
	}
	return err
}

// drain refuses what is new, and lets every connection go when it is idle.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for c := range s.conns {
		c.depart()
	}
}

// cut ends the contexts of all calls, and connections without further waiting.
func (s *Server) cut() {
	s.stop(ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.close(websocket.StatusGoingAway, "the gateway is stopping", false)
	}
}
