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
		text, room, err := c.receive()
		if err != nil {
			c.ended(err)
			return
		}
		select {
		case c.slots <- struct{}{}:
		case <-c.ctx.Done():
			room.release()
			return
		}
		c.calls.Go(func() {
			defer room.release()
			c.handle(text)
		})
	}
}

// receive reads a message. How long it waits for one to begin is up to the
// writer's pings; one that has begun must arrive within the time for reading.
// The message keeps its room until that is released; without one, it is.
func (c *Conn) receive() ([]byte, *held, error) {
	kind, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, nil, err
	}
	if err := c.nc.SetReadDeadline(time.Now().Add(c.srv.limits.Read)); err != nil {
		return nil, nil, err
	}
	longest := int64(c.srv.limits.Body)
	room := c.srv.hold(io.LimitReader(r, longest+1))
	text, err := io.ReadAll(room)
	switch {
	case err != nil:
	case int64(len(text)) > longest:
		err = errFrame
	case kind != websocket.MessageText:
		err = fmt.Errorf("a binary message: %w", errors.ErrUnsupported)
	default:
		c.reads.Add(1)
		err = c.nc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		room.release()
		return nil, nil, err
	}
	return text, room, nil
}

// ended says goodbye where the peer can still be told what was wrong.
func (c *Conn) ended(err error) {
	switch {
	case errors.Is(err, errFrame):
		c.close(websocket.StatusMessageTooBig, fmt.Sprintf("a message may have at most %d bytes", c.srv.limits.Body), false)
	case errors.Is(err, errBusy):
		c.close(websocket.StatusTryAgainLater, "the gateway is busy: try again", false)
	case errors.Is(err, errors.ErrUnsupported):
		c.close(websocket.StatusUnsupportedData, "messages are JSON in text frames", false)
	default:
		c.abort()
	}
}

// handle answers one message.
func (c *Conn) handle(text []byte) {
	answer := c.srv.answer(c.ctx, c.caller, c.limiter(), text)
	if answer == nil {
		c.release()
		return
	}
	c.reply(answer)
}
