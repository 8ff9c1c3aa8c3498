package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// Why a connection's context ends.
var (
	// ErrPeerGone is a client that closed or does not answer pings.
	ErrPeerGone = errors.New("the client is gone")
	// ErrClosed is a connection that the gateway closed: a slow client, a removed token, or a gateway that stops.
	ErrClosed = errors.New("the gateway closed the connection")
)

// Conn is one WebSocket connection. Its methods are safe for concurrent use, also after its end.
//
// Its reader starts a goroutine for each message, up to [Limits.InFlight], and then stops reading. Its writer writes
// answers and notifications in queue order, and the close frame; beside it a ping waits for its pong. Whichever ends
// first ends the other; the reader waits for the calls that it started.
type Conn struct {
	srv     *Server
	ws      *websocket.Conn
	nc      net.Conn // below ws, for deadlines and for closing at once
	key     *key     // nil for a caller without a token
	session string   // a page's, by its hash; empty for a caller with a token, and without
	limit   *rate.Limiter
	socket  *socket // nil outside of Serve
	caller  *Caller
	memory  *account

	ctx    context.Context //nolint:containedctx // the connection is what owns the calls made over it
	cancel context.CancelCauseFunc
	slots  chan struct{} // one for each message in flight
	calls  sync.WaitGroup
	reads  atomic.Int64
	wake   chan struct{}

	mu      sync.Mutex
	queue   []item
	notes   int      // notifications in the queue
	closing *closing // set once the connection is to end
}

// The outcomes of a notification, for [Options.OnNotify].
const (
	// NotifySent is one that was written.
	NotifySent = "sent"
	// NotifyCoalesced is one that was replaced by a newer one with its key.
	NotifyCoalesced = "coalesced"
	// NotifyDropped is one whose connection has ended, or is closed because of it.
	NotifyDropped = "dropped"
)

type item struct {
	answer []byte // nil for a notification
	lease  *lease // the answer's
	key    string
	method string
	params json.RawMessage
}

type closing struct {
	code    websocket.StatusCode
	reason  string
	patient bool // waits for what is in flight and queued
}

func newConn(s *Server, k *key, from *socket, local bool) *Conn {
	c := &Conn{
		srv: s, key: k, limit: limiterOf(k, local), socket: from, caller: callerOf(k), memory: s.quota.connection(),
		slots: make(chan struct{}, s.limits.InFlight), wake: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancelCause(s.base)
	c.caller.Conn = c
	return c
}

// Context ends with the connection; its cause is [ErrPeerGone] or [ErrClosed].
func (c *Conn) Context() context.Context { return c.ctx }

// Caller returns the connection's caller.
func (c *Conn) Caller() *Caller { return c.caller }

// Notify queues a notification and never blocks. It replaces a queued one with the same key, unless that is empty,
// but goes to the end of the queue: a client must not see it before earlier changes. Params that are a
// [json.RawMessage] are shared and must not change afterwards.
//
// If [Limits.Queue] notifications wait, the connection is closed with the status 1013: the client must reconnect and
// catch up.
func (c *Conn) Notify(key, method string, params any) {
	raw, ok := params.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = Encode(params); err != nil {
			c.srv.log.Error("a notification cannot be encoded", slog.String("method", method), slog.Any("error", err))
			c.srv.opts.OnNotify(NotifyDropped)
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing != nil {
		c.srv.opts.OnNotify(NotifyDropped)
		return
	}
	if at := slices.IndexFunc(c.queue, func(i item) bool { return key != "" && i.key == key }); at >= 0 {
		c.queue = slices.Delete(c.queue, at, at+1)
		c.notes--
		c.srv.opts.OnNotify(NotifyCoalesced)
	}
	if c.notes >= c.srv.limits.Queue {
		c.srv.opts.OnNotify(NotifyDropped)
		c.closeLocked(closing{code: websocket.StatusTryAgainLater, reason: "this client reads too slowly: connect again, and ask what changed since"})
		return
	}
	c.queue = append(c.queue, item{key: key, method: method, params: raw})
	c.notes++
	c.wakeWriter()
}

// reply queues an answer. It keeps its slot and lease until it is written, which bounds unread answers.
func (c *Conn) reply(answer []byte, l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing == nil || c.closing.patient {
		c.queue = append(c.queue, item{answer: answer, lease: l})
	} else {
		l.release()
	}
	c.wakeWriter()
}

func (c *Conn) close(code websocket.StatusCode, reason string, patient bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(closing{code, reason, patient})
}

// closeLocked closes the connection once; an immediate closing replaces a patient one. The lock is held.
func (c *Conn) closeLocked(f closing) {
	if c.closing != nil && (!c.closing.patient || f.patient) {
		return
	}
	c.closing = &f
	if !f.patient {
		c.dropQueue()
		c.cancel(ErrClosed)
	}
	c.wakeWriter()
}

func (c *Conn) dropQueue() {
	for range c.notes {
		c.srv.opts.OnNotify(NotifyDropped)
	}
	for i := range c.queue {
		if l := c.queue[i].lease; l != nil {
			l.release()
		}
	}
	c.queue, c.notes = nil, 0
}

// over is called when the writer has ended.
func (c *Conn) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = &closing{}
	c.dropQueue()
}

func (c *Conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next returns an item, or the closing when its time has come, or neither.
func (c *Conn) next() (it item, ok bool, end *closing) {
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
	if c.closing != nil && (!c.closing.patient || len(c.slots) == 0) {
		return item{}, false, c.closing
	}
	return item{}, false, nil
}

// abort ends the connection at once. Both must be closed: ws has a finalizer and refers to itself, so it would never
// be freed.
func (c *Conn) abort() {
	c.cancel(ErrPeerGone)
	_ = c.nc.Close() // first, so that CloseNow does not wait
	_ = c.ws.CloseNow()
}

// Encode encodes params of a notification, for connections that share them.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	err := appendJSON(&buf, v)
	return buf.Bytes(), err
}

var errFrame = errors.New("the message is too long")

// read is the connection's reader. It returns after the last call that it started.
func (c *Conn) read() {
	defer c.calls.Wait()
	for {
		text, l, err := c.receive()
		if err != nil {
			c.ended(err)
			return
		}
		select {
		case c.slots <- struct{}{}:
		case <-c.ctx.Done():
			l.release()
			return
		}
		c.calls.Go(func() { c.handle(text, l) })
	}
}

// receive reads a message. The writer's pings bound the wait for its beginning, Limits.Read the rest. The caller must
// release the lease.
func (c *Conn) receive() ([]byte, *lease, error) {
	kind, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, nil, err
	}
	longest := int64(c.srv.limits.Body)
	l := c.srv.quota.lease(c.key, c.memory, c.socket)
	l.drop = c.drop
	text, err := io.ReadAll(&arrival{
		ctx: c.ctx, lease: l, from: io.LimitReader(r, longest+1), whole: longest,
		read: c.srv.limits.Read, deadline: c.nc.SetReadDeadline,
	})
	switch {
	case err != nil:
	case int64(len(text)) > longest:
		err = errFrame
	case kind != websocket.MessageText:
		err = fmt.Errorf("a binary message: %w", errors.ErrUnsupported)
	default:
		c.reads.Add(1)
		l.settle(int64(len(text)))
		err = c.nc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		l.release()
		return nil, nil, err
	}
	return text, l, nil
}

// drop ends the connection because of a message that arrives too slowly.
func (c *Conn) drop(*Error) {
	c.cancel(ErrClosed)
	_ = c.nc.Close() // ends the reader
}

func (c *Conn) ended(err error) {
	switch {
	case errors.Is(err, errFrame):
		c.close(websocket.StatusMessageTooBig, fmt.Sprintf("a message may have at most %d bytes", c.srv.limits.Body), false)
	case isOverloaded(err):
		c.close(websocket.StatusTryAgainLater, "the gateway is overloaded: read the answers that are due, then connect again", false)
	case errors.Is(err, errors.ErrUnsupported):
		c.close(websocket.StatusUnsupportedData, "messages are JSON in text frames", false)
	default:
		c.abort()
	}
}

func (c *Conn) handle(text []byte, l *lease) {
	answer := c.srv.answer(c.ctx, c.caller, c.limit, l, text)
	if answer == nil {
		l.release()
		c.release()
		return
	}
	c.reply(answer, l)
}

func (c *Conn) write() {
	defer c.over()
	var pings sync.WaitGroup
	defer pings.Wait()
	defer c.abort()
	limits := c.srv.limits
	quiet := time.NewTimer(limits.Ping)
	defer quiet.Stop()
	heard := c.reads.Load()
	for {
		it, ok, end := c.next()
		if ok {
			if err := c.send(it); err != nil {
				c.lost("writing", err)
				return
			}
			continue
		}
		if end != nil {
			c.finish(end)
			return
		}
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			if _, _, end := c.next(); end != nil {
				c.finish(end)
			}
			return
		case <-quiet.C:
			c.check(c.srv.tokens.Load()) // its session may have run out
			if now := c.reads.Load(); now != heard || c.full() {
				heard = now
				quiet.Reset(limits.Ping)
				continue
			}
			pings.Go(func() {
				c.ping(heard)
				quiet.Reset(limits.Ping)
			})
		}
	}
}

func (c *Conn) send(it item) error {
	// A closed socket takes no deadline; the write below then fails.
	_ = c.nc.SetWriteDeadline(c.srv.limits.writeBy(len(it.answer) + len(it.params)))
	if it.answer != nil {
		defer c.release()
		defer it.lease.release()
		return c.ws.Write(context.Background(), websocket.MessageText, it.answer)
	}
	name, err := Encode(it.method)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	buf.WriteString(`{"jsonrpc":"2.0","method":`)
	buf.Write(name)
	if len(it.params) > 0 {
		buf.WriteString(`,"params":`)
		buf.Write(it.params)
	}
	buf.WriteByte('}')
	outcome := NotifySent
	if err = c.ws.Write(context.Background(), websocket.MessageText, buf.Bytes()); err != nil {
		outcome = NotifyDropped
	}
	c.srv.opts.OnNotify(outcome)
	return err
}

func (c *Conn) release() {
	<-c.slots
	c.wakeWriter()
}

// ping ends a connection that has sent neither a pong in time nor any message since the one with the number heard.
func (c *Conn) ping(heard int64) {
	// Not below c.ctx: its end would end the connection in the middle of a ping, without the close frame.
	ctx, cancel := context.WithTimeout(context.Background(), c.srv.limits.Write)
	defer cancel()
	if err := c.ws.Ping(ctx); err != nil && c.ctx.Err() == nil && c.reads.Load() == heard && !c.full() {
		c.lost("no pong", err)
		c.abort()
	}
}

// full reports whether the reader has as many messages in flight as it may, and so reads no pong.
func (c *Conn) full() bool { return len(c.slots) == cap(c.slots) }

// finish sends the close frame and waits for the peer's for a part of Limits.Drain.
func (c *Conn) finish(end *closing) {
	wait := min(time.Second, c.srv.limits.Drain/10)
	if err := c.nc.SetDeadline(time.Now().Add(wait)); err != nil {
		return
	}
	c.srv.log.Debug("closing a connection", slog.String("reason", end.reason))
	_ = c.ws.Close(end.code, end.reason) // the peer may be gone
}

func (c *Conn) lost(what string, err error) {
	if c.ctx.Err() == nil {
		c.srv.log.Info("a connection is lost", slog.String("what", what), slog.Any("error", err))
	}
}
