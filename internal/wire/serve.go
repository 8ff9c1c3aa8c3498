package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/callctx"
	"github.com/grapnelhq/grapnel/phases"
)

// Handler is a plugin, such as an *sdk.Plugin. Its methods are called concurrently. Their panics become errors with
// the code "panic"; their contexts end with the call's deadline, the host's Cancel and the session.
type Handler interface {
	// Describe is called when a session begins.
	Describe(ctx context.Context) (*phases.Description, error)
	// Configure is called next, and whenever the configuration changes. A *phases.ConfigError in the error's chain
	// refuses it.
	Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error)
	Dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error)
	CallTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error)
}

// Register makes a server made with ServerOptions answer sessions with h. Unless lane is nil, the first session whose
// host offers it uses it.
func Register(s *Server, h Handler, lane net.Conn) {
	desc := serviceDesc()
	s.RegisterService(&desc, &service{handler: h, offered: lane, table: phases.Standard()})
}

type service struct {
	handler Handler
	offered net.Conn // the plugin's end of a lane
	table   *phases.Table
	laned   atomic.Bool // the lane serves, or has served, a session
}

// ServeLines answers one session with h over a program's standard input and output. It returns when in ends, or with an
// error when the host breaks the protocol, after all handlers have returned.
func ServeLines(ctx context.Context, in io.Reader, out io.Writer, h Handler) error {
	return (&service{handler: h, table: phases.Standard()}).serve(newLineStream(ctx, in, out)) //nolint:contextcheck // the stream has it
}

// frameStream carries a plugin's frames: gRPC's stream, or lines.
type frameStream interface {
	sender
	RecvMsg(m any) error
	Context() context.Context
}

// serve runs one session. It returns when the session has ended and all handlers have returned.
func (p *service) serve(stream frameStream) error {
	s := &served{service: p, ctx: stream.Context(), calls: map[uint64]*handling{}, work: make(chan *handling), over: make(chan struct{})}
	s.writer = newWriter(stream, DefaultFrame)
	if _, ok := stream.(*lineStream); ok {
		s.writer.json = frameForms().plugin
	}
	s.writer.rule, s.writer.what, s.writer.oversize = ruleClean, "the answer", phases.CauseOversizeReply
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
	lane   *pluginLane    // nil if frames go over gRPC
	tasks  sync.WaitGroup // writer, workers and other handlers
	work   chan *handling // from the reader to an idle worker
	over   chan struct{}  // closed when the session ends

	asked calls // host calls of the plugin
	group callctx.Group[*handling]

	mu     sync.Mutex
	calls  map[uint64]*handling // that handlers work on
	drains []uint64             // ids to answer when nothing is left
	ended  bool
}

func (s *served) readAll(stream frameStream) error {
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
	s.writer.close(errWriterClosed)
	if s.lane != nil {
		s.lane.end()
	}
	close(s.over)
	s.mu.Lock()
	s.ended = true
	for _, h := range s.calls {
		h.end()
	}
	s.mu.Unlock()
	over := phases.Errorf(phases.CauseSessionReset, "the session with the host has ended")
	for _, c := range s.asked.end(over) {
		c.deliver(answer{err: over})
	}
	s.tasks.Wait()
	s.group.Stop()
}

// accept handles one frame; it runs no handler. An error ends the session.
func (s *served) accept(in *incoming) error {
	if err := in.parse(hostUnsupported, frameForms().host); err != nil {
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
	case hostHostReply:
		s.answered(*in)
	case hostPing:
		in.free()
		return s.pong(in.id)
	case hostDrain:
		in.free()
		s.drain(in.id)
	case hostUnsupported:
		s.refused(in)
	default:
		unknown := in.unsupported()
		in.free()
		return answerNow(s.ctx, s.writer, in.id, pluginUnsupported, &unknown, unsupportedFields)
	}
	return nil
}

func (s *served) pong(id uint64) error {
	return answerNow(s.ctx, s.writer, id, pluginPong, &none{}, noFields)
}

// drain answers when no calls are left.
func (s *served) drain(id uint64) {
	s.mu.Lock()
	if len(s.calls) > 0 {
		s.drains = append(s.drains, id)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.drained(id)
}

// drained answers drains, behind all answers that are queued or held.
func (s *served) drained(ids ...uint64) {
	for _, id := range ids {
		if data, err := encodeFrame(s.ctx, s.writer, id, pluginPong, &none{}, noFields); err == nil {
			s.writer.hold(&outgoing{data: data})
		}
	}
	s.writer.flushHeld()
}

// cancel ends the context of a handler; the call may have been answered.
func (s *served) cancel(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.calls[id]; h != nil {
		h.end()
	}
}

// hello takes the host's limits and describes the plugin.
func (s *served) hello(in incoming) error {
	id := in.id
	var m hello
	if err := decode(&s.writer.frames, &in, ruleValid, &m, helloFields); err != nil {
		return fmt.Errorf("the host's Hello %w", err)
	}
	s.writer.mu.Lock()
	s.writer.incarnation, s.writer.frame = in.incarnation, frameLimit(int(min(m.frame, MaxFrame)))
	s.writer.mu.Unlock()
	var d described
	if s.offered != nil && slices.Contains(m.features, featureLane) && !s.laned.Swap(true) {
		if err := s.serveLane(); err != nil {
			return err
		}
		d.lane = true
	}
	s.tasks.Go(func() { s.describe(id, m, d) })
	return nil
}

func (s *served) describe(id uint64, m hello, d described) {
	if m.version != ProtocolVersion {
		d.err = phases.Errorf(phases.CauseVersionMismatch, "the host speaks version %d of the protocol, this plugin version %d", m.version, ProtocolVersion)
	} else {
		var err error
		d.description, err = recovering(s.ctx, none{}, func(ctx context.Context, _ none) (*phases.Description, error) { return s.handler.Describe(ctx) })
		d.err = failure(err, d.description == nil)
	}
	respond(s, id, pluginDescribe, &d, &d.err, describeFields)
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
	respond(s, id, pluginConfigured, &m, &m.err, configuredFields)
}

// enter notes a call, so that Cancel finds it.
func (s *served) enter(in incoming) *handling {
	h := &handling{session: s, in: in}
	s.mu.Lock()
	s.calls[in.id] = h
	h.cancelled = s.ended
	s.mu.Unlock()
	return h
}

// begin handles a call, in a worker.
func (s *served) begin(in incoming) {
	h := s.enter(in)
	select {
	case s.work <- h:
	default:
		s.tasks.Go(func() { s.worker(h) })
	}
}

// worker handles calls and waits for more: a new goroutine would have to grow its stack each time.
func (s *served) worker(h *handling) {
	for {
		h.read()
		s.post(h.run())
		s.finished(h.in.id)
		select {
		case h = <-s.work:
		case <-s.over:
			return
		}
	}
}

// post sends an answer; nil is none.
func (s *served) post(o *outgoing) {
	if o != nil {
		_ = s.writer.send(s.ctx, o) // or the session has ended
	}
}

// finished forgets a call, and answers the drain that waited for it.
func (s *served) finished(id uint64) {
	s.mu.Lock()
	delete(s.calls, id)
	var drained []uint64
	if len(s.calls) == 0 {
		drained, s.drains = s.drains, nil
	}
	s.mu.Unlock()
	if len(drained) > 0 {
		s.drained(drained...)
	}
}

// handling is one call that a plugin works on.
type handling struct {
	session *served
	in      incoming

	// The request, once it is read.
	dispatch *phases.Dispatch
	tool     *phases.ToolCall
	bad      *phases.Error

	// Guarded by the session: call is set while the handler runs, cancelled by an earlier Cancel too.
	call      *callctx.Context[*handling]
	cancelled bool
}

// end cancels the call's context. The session is locked.
func (h *handling) end() {
	h.cancelled = true
	if h.call != nil {
		h.call.Cancel()
	}
}

// read decodes the request. Its frame is not needed afterwards.
func (h *handling) read() {
	var err error
	if h.in.body == hostDispatch {
		h.dispatch = &phases.Dispatch{Incarnation: h.in.incarnation}
		if err = decode(&h.session.writer.frames, &h.in, ruleValid, h.dispatch, dispatchFields); err == nil {
			completeInput(h.dispatch, h.session.table)
		}
	} else {
		h.tool = &phases.ToolCall{Incarnation: h.in.incarnation}
		err = decode(&h.session.writer.frames, &h.in, ruleValid, h.tool, toolCallFields)
	}
	if err != nil {
		h.bad = unreadableRequest(err)
	}
}

// run runs the handler and returns its answer, or the error instead; nil once the session has ended.
func (h *handling) run() *outgoing {
	s := h.session
	if h.dispatch != nil {
		res, err := timed(h, h.dispatch.Remaining, h.dispatch, s.handler.Dispatch)
		m := result{err: err}
		if res != nil {
			m.Result = *res
		}
		return answerOf(s, h.in.id, pluginResult, &m, &m.err, resultFields)
	}
	res, err := timed(h, h.tool.Remaining, h.tool, s.handler.CallTool)
	m := toolResult{err: err}
	if res != nil {
		m.ToolResult = *res
	}
	return answerOf(s, h.in.id, pluginToolResult, &m, &m.err, toolResultFields)
}

// timed calls a handler with the time that is left. Its own deadline error is a timeout too.
func timed[A, B any](h *handling, left time.Duration, in A, handle func(context.Context, A) (*B, error)) (*B, *phases.Error) {
	if h.bad != nil {
		return nil, h.bad
	}
	var deadline time.Time
	if left > 0 {
		deadline = time.Now().Add(left)
	}
	ctx := h.session.group.New(h.session.ctx, h, deadline)
	defer ctx.Cancel()
	h.session.mu.Lock()
	h.call = ctx
	if h.cancelled {
		ctx.Cancel()
	}
	h.session.mu.Unlock()
	out, err := recovering(ctx, in, handle)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = phases.Errorf(phases.CauseTimeout, "the handler ran out of time: %w", err)
	}
	if err != nil {
		return nil, asError(err)
	}
	return out, nil
}

// respond sends a plugin's answer, or an error instead of what cannot be sent: every call is answered.
func respond[T any](s *served, id uint64, b body, m *T, failed **phases.Error, fields func(*form, *T)) {
	s.post(answerOf(s, id, b, m, failed, fields))
}

// answerOf encodes a plugin's answer, or an error instead of what cannot be sent; nil once the session has ended.
func answerOf[T any](s *served, id uint64, b body, m *T, failed **phases.Error, fields func(*form, *T)) *outgoing {
	data, err := encodeFrame(s.ctx, s.writer, id, b, m, fields)
	if err != nil {
		*m = *new(T)
		*failed = asError(err) // part of m
		data, err = encodeFrame(s.ctx, s.writer, id, b, m, fields)
	}
	if err != nil {
		return nil
	}
	return &outgoing{data: data}
}

func recovering[A, B any](ctx context.Context, in A, handle func(context.Context, A) (*B, error)) (v *B, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, panicked(r)
		}
	}()
	return handle(ctx, in)
}

// failure converts a handler's error for the wire. Neither error nor answer is an error too.
func failure(err error, empty bool) *phases.Error {
	if err == nil && empty {
		err = &phases.Error{Code: phases.CausePluginError, PluginCode: "no_answer", Message: "the plugin gave no answer"}
	}
	if err == nil {
		return nil
	}
	return asError(err)
}

func unreadableRequest(err error) *phases.Error {
	return &phases.Error{Code: phases.CausePluginError, PluginCode: "invalid_request", Message: fmt.Sprintf("the request %v", err), Err: err}
}
