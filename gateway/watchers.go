package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/internal/rpc"
)

// conn is what watching needs of an *rpc.Conn.
type conn interface {
	Notify(key, method string, params any)
	Context() context.Context
	Caller() *rpc.Caller
}

const maxWatches = 256 // of one connection

// watchers are the connections that watch something, each with a value. Methods other than count need the lock. The
// watches of a connection end with it.
type watchers[V any] struct {
	mu    sync.Mutex
	of    map[string]map[conn]V // by what is watched
	conns map[conn]*watcher
	open  atomic.Int64
}

type watcher struct {
	watches int
	forget  func() bool // unregisters from the connection's end
}

// count returns how many watches there are.
func (w *watchers[V]) count() int { return int(w.open.Load()) }

// enter registers a watch, or replaces the value of an existing one.
func (w *watchers[V]) enter(c conn, what string, v V) error {
	if _, ok := w.of[what][c]; !ok {
		if w.conns == nil {
			w.of, w.conns = map[string]map[conn]V{}, map[conn]*watcher{}
		}
		own := w.conns[c]
		switch {
		case own == nil:
			own = &watcher{forget: context.AfterFunc(c.Context(), func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.leaveAll(c)
			})}
			w.conns[c] = own
		case own.watches >= maxWatches:
			return rpc.Errorf(rpc.CodeInvalid, "this connection watches %d workspaces, and may watch no more", maxWatches)
		}
		own.watches++
		w.open.Add(1)
		if w.of[what] == nil {
			w.of[what] = map[conn]V{}
		}
	}
	w.of[what][c] = v
	return nil
}

// leave ends a watch and returns its value. It reports false if there was none.
func (w *watchers[V]) leave(c conn, what string) (v V, ok bool) {
	if v, ok = w.of[what][c]; !ok {
		return v, false
	}
	delete(w.of[what], c)
	if len(w.of[what]) == 0 {
		delete(w.of, what)
	}
	w.open.Add(-1)
	own := w.conns[c]
	if own.watches--; own.watches == 0 {
		own.forget()
		delete(w.conns, c)
	}
	return v, true
}

// leaveAll ends the watches of a connection. It reports whether there were any.
func (w *watchers[V]) leaveAll(c conn) bool {
	_, ok := w.conns[c]
	for what := range w.of {
		w.leave(c, what)
	}
	return ok
}
