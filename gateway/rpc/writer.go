package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// write is the connection's writer. It ends with the connection.
func (c *Conn) write() {
	defer c.over()
	defer c.abort()
	limits := c.srv.limits
	quiet := time.NewTimer(limits.Ping)
	defer quiet.Stop()
	heard := c.reads.Load()
	for {
		it, ok, bye := c.next()
		if ok {
			if err := c.send(it); err != nil {
				c.lost("writing", err)
				return
			}
			continue
		}
		if bye != nil {
			c.finish(bye)
			return
		}
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			if _, _, bye := c.next(); bye != nil {
				c.finish(bye)
			}
			return
		case <-quiet.C:
			if now := c.reads.Load(); now != heard || len(c.slots) == cap(c.slots) {
				heard = now // it lives, or the reader is too busy to see a pong
			} else if err := c.ping(); err != nil && c.reads.Load() == heard {
				c.lost("no sign of life", err)
				return
			}
			quiet.Reset(limits.Ping)
		}
	}
}

// send writes an item within the time for writing.
func (c *Conn) send(it item) error {
	// A socket that is closed takes no deadline, and writing to it fails below.
	_ = c.nc.SetWriteDeadline(c.srv.limits.writeBy(len(it.answer) + len(it.params)))
	if it.answer != nil {
		defer c.release()
		defer it.lease.release()
		return c.ws.Write(context.Background(), websocket.MessageText, it.answer)
	}
	buf, _ := c.srv.buffers.Get().(*bytes.Buffer)
	buf.Reset()
	notification(buf, it.method, it.params)
	outcome := NotifySent
	err := c.ws.Write(context.Background(), websocket.MessageText, buf.Bytes())
	if err != nil {
		outcome = NotifyDropped
	}
	c.srv.noted(outcome)
	if buf.Cap() <= keptBuffer {
		c.srv.buffers.Put(buf)
	}
	return err
}

// notification writes a notification's message.
func notification(buf *bytes.Buffer, method string, params json.RawMessage) {
	name, err := encode(method)
	if err != nil {
		name = []byte(`""`) // a string always encodes
	}
	buf.WriteString(`{"jsonrpc":"2.0","method":`)
	buf.Write(name)
	if len(params) > 0 {
		buf.WriteString(`,"params":`)
		buf.Write(params)
	}
	buf.WriteByte('}')
}

// release gives a slot back.
func (c *Conn) release() {
	<-c.slots
	c.poke()
}

// ping asks for a sign of life and waits for it. Nothing else is written
// meanwhile, so a live peer costs others one round trip at each Ping.
func (c *Conn) ping() error {
	ctx, cancel := context.WithTimeout(c.ctx, c.srv.limits.Write)
	defer cancel()
	return c.ws.Ping(ctx)
}

// finish says farewell, and waits for the peer's, but only for a part of the time
// in which the server must be able to stop.
func (c *Conn) finish(bye *farewell) {
	wait := min(time.Second, c.srv.limits.Drain/10)
	if err := c.nc.SetDeadline(time.Now().Add(wait)); err != nil {
		return
	}
	c.srv.log.Debug("closing a connection", slog.String("reason", bye.reason))
	_ = c.ws.Close(bye.code, bye.reason) // a peer that is gone needs no farewell
}

// lost logs why a connection ends that nobody closed.
func (c *Conn) lost(what string, err error) {
	if c.ctx.Err() == nil {
		c.srv.log.Info("a connection is lost", slog.String("what", what), slog.Any("error", err))
	}
}

// keptBuffer is up to which size a buffer is kept for the next message.
const keptBuffer = 64 << 10

// newBuffers keeps buffers for messages, so that connections need none while they
// are idle.
func newBuffers() *sync.Pool {
	return &sync.Pool{New: func() any { return new(bytes.Buffer) }}
}
