package mcpserver

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastAnswers is how long a client that has closed its input still gets answers.
const lastAnswers = time.Minute

// Serve serves one client over a pair of streams, until the input or ctx ends. A client that ends the input early, such as
// a shell pipe, still gets its answers.
func Serve(ctx context.Context, s *mcp.Server, in io.Reader, out io.Writer) error {
	stream := &patient{inner: &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}}}
	if err := s.Run(ctx, stream); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the connection to the agent: %w", err)
	}
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// patient is a transport that reports the end of its input only after every call was answered.
type patient struct{ inner mcp.Transport }

func (p *patient) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := p.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &patientConn{Connection: inner, open: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1), ended: ctx.Done(), closed: make(chan struct{})}, nil
}

type patientConn struct {
	mcp.Connection

	mu       sync.Mutex
	open     map[jsonrpc.ID]bool // calls without an answer
	answered chan struct{}       // one of them got its answer
	ended    <-chan struct{}     // from outside: calls are cancelled then, and may get no answer
	closing  sync.Once
	closed   chan struct{}
}

func (c *patientConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if err != nil {
		c.await()
		return nil, err
	}
	if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		c.open[r.ID] = true
		c.mu.Unlock()
	}
	return msg, nil
}

func (c *patientConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if r, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default: // the one before is not seen yet
		}
	}
	return err
}

func (c *patientConn) await() {
	late := time.NewTimer(lastAnswers)
	defer late.Stop()
	for c.waiting() {
		select {
		case <-c.answered:
		case <-c.ended:
			return
		case <-c.closed:
			return
		case <-late.C:
			return
		}
	}
}

func (c *patientConn) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > 0
}

func (c *patientConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
