package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"
)

// errFrame is a WebSocket message that is longer than the limit.
var errFrame = errors.New("the message is too long")

// read is the connection's reader. It ends when the connection does, and behind
// the last call that it started.
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

// receive reads a message. How long it waits for one to begin is up to the
// writer's pings; one that has begun must arrive within the time for reading.
// The lease counts it, and is the caller's to release.
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
	_ = c.nc.Close() // whoever reads returns
}

// ended says goodbye where the peer can still be told what was wrong.
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

// handle answers one message.
func (c *Conn) handle(text []byte, l *lease) {
	answer := c.srv.answer(c.ctx, c.caller, c.limiter(), l, text)
	if answer == nil {
		l.release()
		c.release()
		return
	}
	c.reply(answer, l)
}
