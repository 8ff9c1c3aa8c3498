package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
)

// Why a connection's context ends.
var (
	// ErrPeerGone is a client that closed, or that shows no sign of life.
	ErrPeerGone = errors.New("the client is gone")
	// ErrClosed is a connection that the gateway closed: the client reads or sends too
	// slowly, its token is gone, or the gateway stops and waits no longer.
	ErrClosed = errors.New("the gateway closed the connection")
)

// Conn is one WebSocket connection. Its methods are safe for concurrent use, also
// behind its end.
//
// Two goroutines belong to it. The reader reads messages and starts a goroutine
// for each, up to [Limits.InFlight]; then it waits, and the client with it. The
// writer alone writes: answers and notifications in the order of their queue, then
// pings, at the end the closing. Whichever ends first ends the other; the reader
// waits for the calls that it started.
type Conn struct {
	srv    *Server
	ws     *websocket.Conn
	nc     net.Conn // below ws, for deadlines and for an end without ceremony
	key    *key     // nil for a caller without a token
	local  bool     // the peer is on this machine
	seat   seat     // what it is counted by
	socket *socket  // nc, if it is one of Serve's
	caller *Caller
	memory *account // what its messages and answers take

	ctx    context.Context //nolint:containedctx // the connection is what owns the calls made over it
	cancel context.CancelCauseFunc
	slots  chan struct{} // one for each message in flight
	calls  sync.WaitGroup
	reads  atomic.Int64 // messages read
	wake   chan struct{}

	mu    sync.Mutex
	queue []item
	notes int       // how many of the queue are notifications
	bye   *farewell // set once the connection is to end
}

// What becomes of a notification, as [Options.OnNotify] is told.
const (
	// NotifySent is one that was written. Whether the client reads it is not known.
	NotifySent = "sent"
	// NotifyCoalesced is one that a newer one with its key has replaced.
	NotifyCoalesced = "coalesced"
	// NotifyDropped is one whose connection has ended, or ends because of it.
	NotifyDropped = "dropped"
)

// item is something to be written: an answer, or a notification.
type item struct {
	answer []byte // nil for a notification
	lease  *lease // of the answer
	key    string
	method string
	params json.RawMessage
}

// farewell is how a connection ends.
type farewell struct {
	code   websocket.StatusCode
	reason string
	// patient lets what is in flight and queued go first.
	patient bool
}

// newConn makes a connection. Nothing runs yet.
func newConn(s *Server, ws *websocket.Conn, nc net.Conn, k *key, local bool) *Conn {
	ctx, cancel := context.WithCancelCause(s.base)
	c := &Conn{
		srv: s, ws: ws, nc: nc, key: k, local: local, caller: callerOf(k),
		ctx: ctx, cancel: cancel,
		slots: make(chan struct{}, s.limits.InFlight),
		wake:  make(chan struct{}, 1),

		memory: s.quota.connection(),
	}
	c.caller.Conn = c
	return c
}

// Context ends with the connection; its cause is [ErrPeerGone] or [ErrClosed].
func (c *Conn) Context() context.Context { return c.ctx }

// Caller returns who calls over the connection.
func (c *Conn) Caller() *Caller { return c.caller }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Notify queues a notification. It never blocks. One that still waits with the
// same key, unless that is empty, is dropped for it. The new one goes to the end:
// in the old one's place it would come before what happened earlier, and a client
// that then loses its connection would believe to have seen that. Params that are
// a [json.RawMessage] are used as they are, and shared: give that to many
// connections, and do not change it afterwards.
//
// A connection that reads so slowly that [Limits.Queue] notifications wait is
// closed with the status 1013: it has to connect again and to ask what it missed.
func (c *Conn) Notify(key, method string, params any) {
	raw, ok := params.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = encode(params); err != nil {
			c.srv.log.Error("a notification cannot be encoded", slog.String("method", method), slog.Any("error", err))
			c.srv.noted(NotifyDropped)
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bye != nil {
		c.srv.noted(NotifyDropped)
		return
	}
	if at := slices.IndexFunc(c.queue, func(i item) bool { return key != "" && i.key == key }); at >= 0 {
		c.queue = slices.Delete(c.queue, at, at+1)
		c.notes--
		c.srv.noted(NotifyCoalesced)
	}
	if c.notes >= c.srv.limits.Queue {
		c.srv.noted(NotifyDropped)
		c.leave(farewell{code: websocket.StatusTryAgainLater, reason: "this client reads too slowly: connect again, and ask what changed since"})
		return
	}
	c.queue = append(c.queue, item{key: key, method: method, params: raw})
	c.notes++
	c.poke()
}

// reply queues an answer. Its slot and its lease are given back when it is written,
// so that answers which nobody reads are no more than the slots.
func (c *Conn) reply(answer []byte, l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bye == nil || c.bye.patient {
		c.queue = append(c.queue, item{answer: answer, lease: l})
	} else {
		l.release()
	}
	c.poke()
}

// close ends the connection: at once, or patiently.
func (c *Conn) close(code websocket.StatusCode, reason string, patient bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(farewell{code, reason, patient})
}

// leave is close for who has the lock. The first reason counts, but one that is
// not patient goes before one that is.
func (c *Conn) leave(f farewell) {
	if c.bye != nil && (!c.bye.patient || f.patient) {
		return
	}
	c.bye = &f
	if !f.patient {
		c.discard()
		c.cancel(ErrClosed)
	}
	c.poke()
}

// discard drops what waits. The lock is held.
func (c *Conn) discard() {
	for range c.notes {
		c.srv.noted(NotifyDropped)
	}
	for i := range c.queue {
		if l := c.queue[i].lease; l != nil {
			l.release()
		}
	}
	c.queue, c.notes = nil, 0
}

// over takes nothing more: the writer has ended.
func (c *Conn) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bye = &farewell{}
	c.discard()
}

// noted tells the observer what became of a notification.
func (s *Server) noted(outcome string) {
	if s.onNotify != nil {
		s.onNotify(outcome)
	}
}

// poke wakes the writer.
func (c *Conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next takes what is to be written next: an item, or the farewell when its time
// has come; neither when there is nothing to do now.
func (c *Conn) next() (it item, ok bool, bye *farewell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) > 0 {
		it = c.queue[0]
		c.queue[0] = item{}
		if c.queue = c.queue[1:]; len(c.queue) == 0 {
			c.queue = nil // an idle connection holds no memory
		}
		if it.answer == nil {
			c.notes--
		}
		return it, true, nil
	}
	if c.bye != nil && (!c.bye.patient || len(c.slots) == 0) {
		return item{}, false, c.bye
	}
	return item{}, false, nil
}

// abort ends the connection without ceremony. The WebSocket must be closed as well
// as what is below it: it has a finalizer and points at itself, and stays in
// memory for good otherwise.
func (c *Conn) abort() {
	c.cancel(ErrPeerGone)
	_ = c.nc.Close() // first: whoever reads or writes returns, and CloseNow waits for nobody
	_ = c.ws.CloseNow()
}

// encode is appendJSON into memory of its own.
func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	err := appendJSON(&buf, v)
	return buf.Bytes(), err
}
