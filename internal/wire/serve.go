package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// Handler is what a plugin does; *sdk.Plugin is one. Its methods are called
// from many goroutines at once. Their panics become errors with the code
// "panic", and their contexts end with the call's deadline, with the host's
// Cancel and with the session.
type Handler interface {
	// Describe is called when a session begins.
	Describe(ctx context.Context) (*phases.Description, error)
	// Configure is called next, and again whenever the operator changes the
	// configuration. A *phases.ConfigError in the error's chain refuses it.
	Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error)
	Dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error)
	CallTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error)
}

// ServeOptions says how a plugin serves sessions.
type ServeOptions struct {
	// Frame bounds the answers in bytes, below the limit that the host sets;
	// 0 leaves it to the host.
	Frame int
	// OnDrain is called when the host is about to end the session, in a
	// goroutine of its own; the host does not wait for it.
	OnDrain func()
}

// Register makes a server answer sessions with h. The server must have been made
// with ServerOptions.
func Register(s *Server, h Handler, o ServeOptions) {
	pluginpb.RegisterPluginServer(s, &service{handler: h, o: o, table: phases.Standard()})
}

// service is the gRPC service.
type service struct {
	pluginpb.UnimplementedPluginServer
	handler Handler
	o       ServeOptions
	table   *phases.Table
}

// Session implements the service: it is the reader of one session, and returns
// when that has ended and all handlers have returned.
func (p *service) Session(stream grpc.BidiStreamingServer[pluginpb.HostFrame, pluginpb.PluginFrame]) error {
	s := &served{service: p, ctx: stream.Context(), frame: DefaultFrame, calls: map[uint64]*handling{}, asked: map[uint64]chan answer{}, work: make(chan *handling)}
	s.writer = newWriter(stream, DefaultFrame)
	s.tasks.Go(s.writer.run)
	err := s.readAll(stream)
	s.end()
	return err
}

// served is the plugin's side of one session.
type served struct {
	*service
	ctx    context.Context //nolint:containedctx // the session's, for its handlers
	writer *writer
	tasks  sync.WaitGroup // writer, workers and other handlers
	work   chan *handling // from the reader to a worker that waits
	idle   atomic.Int64   // workers that wait

	mu          sync.Mutex
	incarnation uint64
	frame       int
	calls       map[uint64]*handling // that handlers work on
	drains      []uint64             // ids to answer when nothing is left
	lastAsked   uint64
	asked       map[uint64]chan answer // host calls; nil when the session has ended
}

// readAll takes frames off the stream until it ends.
func (s *served) readAll(stream grpc.ServerStream) error {
	var in incoming
	for {
		if err := stream.RecvMsg(&in); err != nil {
			return nil //nolint:nilerr // the host has ended the session, as it may
		}
		if err := s.accept(&in); err != nil {
			return err
		}
	}
}

// end stops everything that belongs to the session and waits for it.
func (s *served) end() {
	close(s.work)
	s.writer.close(errWriterClosed)
	s.mu.Lock()
	for _, h := range s.calls {
		h.cancel(context.Canceled)
	}
	for _, reply := range s.asked {
		reply <- answer{err: errSessionOver()}
	}
	s.asked = nil
	s.mu.Unlock()
	s.tasks.Wait()
}

func errSessionOver() error {
	return phases.Errorf(phases.CauseSessionReset, "the session with the host has ended")
}

// accept handles one frame; it runs no handler. An error ends the session.
func (s *served) accept(in *incoming) error {
	if err := in.parse(hostUnsupported); err != nil {
		in.free()
		return fmt.Errorf("the host sent a frame that cannot be read: %w", err)
	}
	switch in.body {
	case hostHello:
		return s.hello(*in)
	case hostConfigure:
		request := *in
		s.tasks.Go(func() { s.configure(request) })
	case hostDispatch, hostCallTool:
		s.begin(*in)
	case hostCancel:
		in.free()
		s.cancel(in.id)
	case hostReplied:
		s.answered(*in)
	case hostPing:
		in.free()
		return s.pong(in.id)
	case hostDrain:
		in.free()
		return s.drain(in.id)
	case hostUnsupported:
		s.refused(in)
	default:
		in.free()
		return hurry(s, in.id, pluginUnsupported, &unsupported{uint64(in.stranger)}, unsupportedFields) //nolint:gosec // positive
	}
	return nil
}

func (s *served) pong(id uint64) error { return hurry(s, id, pluginPong, &none{}, noFields) }

// drain answers when nothing is left to answer.
func (s *served) drain(id uint64) error {
	if s.o.OnDrain != nil {
		s.tasks.Go(s.o.OnDrain)
	}
	s.mu.Lock()
	if len(s.calls) > 0 {
		s.drains = append(s.drains, id)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.pong(id)
}

// cancel ends the context of a handler. A call that is not there has been
// answered.
func (s *served) cancel(id uint64) {
	s.mu.Lock()
	h := s.calls[id]
	s.mu.Unlock()
	if h != nil {
		h.cancel(context.Canceled)
	}
}

// hello takes the host's limits and describes the plugin.
func (s *served) hello(in incoming) error {
	id := in.id
	var m hello
	if err := decode(&s.writer.frames, &in, ruleValid, &m, helloFields); err != nil {
		return fmt.Errorf("the host's Hello %w", err)
	}
	s.mu.Lock()
	s.incarnation = in.incarnation
	s.frame = frameLimit(int(min(m.frame, MaxFrame)))
	if s.o.Frame > 0 {
		s.frame = min(s.frame, s.o.Frame)
	}
	s.writer.limit(s.frame)
	s.mu.Unlock()
	s.tasks.Go(func() { s.describe(id, m) })
	return nil
}

func (s *served) describe(id uint64, m hello) {
	var d described
	if m.version != ProtocolVersion {
		d.err = phases.Errorf(phases.CauseVersionMismatch, "the host speaks version %d of the protocol, this plugin version %d", m.version, ProtocolVersion)
	} else {
		var err error
		d.description, err = recovering(s.ctx, none{}, func(ctx context.Context, _ none) (*phases.Description, error) { return s.handler.Describe(ctx) })
		d.err = failure(err, d.description == nil)
	}
	respond(s, id, pluginDescribe, &d, describeFields, func(err *phases.Error) *described { return &described{err: err} })
}

func (s *served) configure(in incoming) {
	id := in.id
	var m configured
	var c phases.Configuration
	err := decode(&s.writer.frames, &in, ruleValid, &c, configureFields)
	if err != nil {
		err = unreadableRequest(err)
	} else {
		c.Host = &remoteHost{s}
		m.description, err = recovering(s.ctx, &c, s.handler.Configure)
	}
	if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
		m.rejected = rejected
	} else {
		m.err = failure(err, m.description == nil)
	}
	respond(s, id, pluginConfigured, &m, configuredFields, func(err *phases.Error) *configured { return &configured{err: err} })
}

// begin notes a call, so that Cancel finds it, and gives it to a worker that
// waits, or to a new one.
func (s *served) begin(in incoming) {
	h := &handling{Context: s.ctx, session: s, in: in}
	s.mu.Lock()
	s.calls[in.id] = h
	s.mu.Unlock()
	select {
	case s.work <- h:
	default:
		s.tasks.Go(func() { s.worker(h) })
	}
}

// maxIdle is how many workers stay when there is nothing to do.
const maxIdle = 64

// worker handles calls. It waits for further ones, because a new goroutine
// would have to grow its stack each time.
func (s *served) worker(h *handling) {
	for ok := true; ok; {
		s.handle(h)
		if s.idle.Add(1) > maxIdle {
			s.idle.Add(-1)
			return
		}
		h, ok = <-s.work
		s.idle.Add(-1)
	}
}

// handle runs the handler of one call and answers, whatever happens.
func (s *served) handle(h *handling) {
	if h.in.body == hostDispatch {
		respond(s, h.in.id, pluginResult, s.dispatch(h), resultFields, func(err *phases.Error) *result { return &result{err: err} })
	} else {
		respond(s, h.in.id, pluginToolResult, s.callTool(h), toolResultFields, func(err *phases.Error) *toolResult { return &toolResult{err: err} })
	}
	h.cancel(context.Canceled)
	s.finished(h.in.id)
}

// finished forgets a call, and ends the drain that waited for it.
func (s *served) finished(id uint64) {
	s.mu.Lock()
	delete(s.calls, id)
	var drained []uint64
	if len(s.calls) == 0 {
		drained, s.drains = s.drains, nil
	}
	s.mu.Unlock()
	for _, id := range drained {
		if s.pong(id) != nil {
			return // the host floods; the reader will notice by itself
		}
	}
}

func (s *served) dispatch(h *handling) *result {
	d := &phases.Dispatch{Incarnation: h.in.incarnation}
	if err := decode(&s.writer.frames, &h.in, ruleValid, d, dispatchFields); err != nil {
		return &result{err: unreadableRequest(err)}
	}
	completeInput(d, s.table)
	h.within(d.Remaining)
	res, err := recovering(h, d, s.handler.Dispatch)
	m := &result{err: failure(h.late(err), false)}
	if res != nil && err == nil {
		m.Result = *res
	}
	return m
}

func (s *served) callTool(h *handling) *toolResult {
	c := &phases.ToolCall{Incarnation: h.in.incarnation}
	if err := decode(&s.writer.frames, &h.in, ruleValid, c, toolCallFields); err != nil {
		return &toolResult{err: unreadableRequest(err)}
	}
	h.within(c.Remaining)
	res, err := recovering(h, c, s.handler.CallTool)
	m := &toolResult{err: failure(h.late(err), false)}
	if res != nil && err == nil {
		m.ToolResult = *res
	}
	return m
}

// late makes the error of a handler that noticed the deadline a timeout: it may
// notice a moment before the host does.
func (h *handling) late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && h.Err() != nil {
		return phases.Errorf(phases.CauseTimeout, "the handler ran out of time: %w", err)
	}
	return err
}

// within sets the deadline of a call that has so much time left.
func (h *handling) within(remaining time.Duration) {
	if remaining > 0 {
		h.until(time.Now().Add(remaining))
	}
}
