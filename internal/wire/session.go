package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

const defaultHostCalls = 64

// HostOptions says how a host opens a session.
type HostOptions struct {
	Incarnation uint64 // the number of this start of the plugin. Answers of another one are dropped.
	Instance    string // the operator's name of the plugin, for errors
	Frame       int    // the longest frame in bytes, DefaultFrame if 0, at most MaxFrame
	HostCalls   int    // how many host calls may be in flight, 64 if 0. Further ones are answered "overloaded".
	// Host answers host calls; nil refuses them. Its methods run in their own goroutines. Their contexts descend from
	// the Dispatch or CallTool that the host call belongs to, and end with the session; Close waits for them.
	Host phases.Host
	// Lane, unless nil, is the host's end of a lane that the plugin has inherited; the session closes it. A lane serves
	// one session.
	Lane net.Conn
	// OnDropped is called with what was not applied, and its id (0 if it has none), from the reader: it must be fast and
	// must not call the session.
	OnDropped func(why Dropped, id uint64)
}

func (o HostOptions) withDefaults() HostOptions {
	o.Frame = frameLimit(o.Frame)
	if o.HostCalls <= 0 {
		o.HostCalls = defaultHostCalls
	}
	if o.OnDropped == nil {
		o.OnDropped = func(Dropped, uint64) {}
	}
	return o
}

// Stats are the sizes of one call's frames, and the time of its answer.
type Stats struct {
	BytesIn  int // BytesIn went to the plugin and BytesOut came back, in a call's frames
	BytesOut int
	Arrived  time.Time // of the answer, or the error instead of it; zero if the caller gave up before
	Lent     bool      // host calls were made in the course of the call, and have contexts made of its own
}

// Session is the host's side of one session with a plugin process:
//
// 1. Open says Hello and waits for the description.
// 2. Configure hands over the configuration; it may be called again.
// 3. Dispatch, CallTool and Ping, concurrently.
// 4. Drain waits until all calls are answered.
// 5. Close ends it, at any time, and more than once.
//
// Done is closed when the session has ended for whatever reason, which Err returns and all further calls fail with.
// Another session may be opened on the same gRPC connection.
type Session struct {
	o           HostOptions
	ctx         context.Context   //nolint:containedctx // the session's, for its host calls
	stream      grpc.ClientStream // nil without gRPC
	cancel      context.CancelCauseFunc
	writer      *writer
	calls       calls
	spare       sync.Pool                // of Asked whose calls are over
	lane        atomic.Pointer[hostLane] // nil if frames go over gRPC
	tap         *tap                     // nil if the connection is not tapped
	description *phases.Description
	described   atomic.Bool // Hello was answered

	serving serving
	tasks   sync.WaitGroup // reader, writer and host calls
	done    chan struct{}
	err     error // set before done is closed
}

// errClosed is the cause of a session's end by Close.
var errClosed = errors.New("the session was closed")

// Open starts a session and returns when the plugin has described itself. ctx bounds only that; its values go on to
// host calls outside of a dispatch. A plugin that requires a missing feature is a version_mismatch.
func Open(ctx context.Context, conn *ClientConn, o HostOptions) (*Session, error) {
	s := &Session{o: o.withDefaults(), done: make(chan struct{})}
	var lasting context.Context
	lasting, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	var err error
	s.stream, err = conn.NewStream(lasting, &serviceDesc().Streams[0], sessionMethod,
		grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(s.o.Frame), grpc.MaxCallSendMsgSize(s.o.Frame))
	stop() // from here on each wait has the context itself
	if err != nil {
		s.closeLane()
		s.cancel(err)
		if ctx.Err() != nil {
			return nil, errAbandoned(ctx, s.who())
		}
		return nil, s.broken(phases.CauseSessionReset, "opened no session", err)
	}
	s.ctx = s.stream.Context()
	if p, ok := peer.FromContext(s.ctx); ok { //nolint:contextcheck // it descends from ctx
		info, _ := p.AuthInfo.(tapInfo)
		s.tap = info.tap
	}
	s.beginWriter(s.stream)
	s.tasks.Go(s.readAll)
	return s.begun(ctx, Transport)
}

// OpenLines is [Open] over a plugin's standard output and input. The session closes both; there is no second one.
func OpenLines(ctx context.Context, stdout, stdin net.Conn, o HostOptions) (*Session, error) {
	s := &Session{o: o.withDefaults(), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.beginWriter(nil)
	s.writer.json = frameForms().host
	l, err := newLineLane(stdout, stdin, s.o.Frame, &s.writer.frames)
	if err != nil {
		s.cancel(err)
		return nil, err
	}
	s.useLane(l)
	s.tasks.Go(func() { //nolint:contextcheck // it lasts as long as the session
		<-s.ctx.Done()
		s.finish(nil)
		_, _ = stdin.Close(), stdout.Close()
	})
	return s.begun(ctx, TransportStdio)
}

func (s *Session) beginWriter(stream sender) {
	s.writer = newWriter(stream, s.o.Frame)
	s.writer.incarnation, s.writer.what, s.writer.oversize = s.o.Incarnation, "the request to "+s.who(), phases.CauseOversizeRequest
	s.tasks.Go(s.writer.run)
}

// begun says Hello on a session whose frames are read.
func (s *Session) begun(ctx context.Context, transport string) (*Session, error) {
	if err := s.hello(ctx, transport); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) hello(ctx context.Context, transport string) error {
	features := phases.Features()
	if s.o.Lane != nil {
		features = append(features, featureLane)
	}
	m := hello{
		version: ProtocolVersion, features: features, frame: uint64(s.o.Frame), hostCalls: uint64(s.o.HostCalls), transport: transport, //nolint:gosec // positive
	}
	var d described
	if err := exchange(ctx, s, &request[hello, described]{
		call: call{ask: hostHello, want: pluginDescribe}, m: &m, fields: helloFields, reply: &d, replyFields: describeFields,
	}); err != nil {
		return err
	}
	if d.err != nil && d.err.Code == phases.CauseVersionMismatch {
		message := fmt.Sprintf("%s does not speak version %d of the protocol", s.who(), ProtocolVersion)
		return &phases.Error{Code: d.err.Code, Message: message, Detail: d.err.Message}
	}
	var err error
	if s.description, err = s.checked(d.description, d.err); err != nil {
		return err
	}
	s.described.Store(true)
	if s.o.Lane == nil || !d.lane {
		s.closeLane()
		return nil
	}
	l, err := newLane(s.o.Lane, s.o.Frame, &s.writer.frames)
	if err == nil {
		s.useLane(l)
	}
	return err
}

func (s *Session) closeLane() {
	if s.o.Lane != nil {
		_ = s.o.Lane.Close()
	}
}

// checked is a description that the plugin has sent, or the error instead.
func (s *Session) checked(d *phases.Description, err *phases.Error) (*phases.Description, error) {
	switch {
	case err != nil:
		return nil, fromPlugin(err)
	case d == nil:
		return nil, phases.Errorf(phases.CauseInvalidReply, "%s did not describe itself", s.who())
	}
	return d, checkFeatures(s.o.Instance, d, phases.Features())
}

func (s *Session) who() string { return fmt.Sprintf("plugin %q", s.o.Instance) }

// Description returns the plugin's description before its configuration. It must not be modified.
func (s *Session) Description() *phases.Description { return s.description }

// Configure hands the plugin its configuration and returns the description in force. A refused configuration is an
// error that wraps a *phases.ConfigError.
func (s *Session) Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error) {
	var m configured
	if err := exchange(ctx, s, &request[phases.Configuration, configured]{
		call: call{ask: hostConfigure, want: pluginConfigured}, m: c, fields: configureFields, reply: &m, replyFields: configuredFields,
	}); err != nil {
		return nil, err
	}
	if m.rejected != nil {
		return nil, &phases.Error{
			Code: phases.CausePluginError, Message: s.who() + " refuses its configuration", Detail: m.rejected.Error(), Err: m.rejected,
		}
	}
	return s.checked(m.description, m.err)
}

// Asked is a dispatch that was sent, or failed to be.
type Asked struct {
	session *Session
	request request[phases.Dispatch, result]
	answer  result
	err     error
}

// Send calls a hook. The caller must call Answer of what it returns, once. freed may be nil; it is called exactly once,
// when the answer has arrived, the session has ended, or nothing was sent: perhaps after Answer has returned, from the
// reader, where it must not block. The incarnation of d is the session's, and ctx's deadline bounds its remaining time.
// d is not used after Send has returned.
func (s *Session) Send(ctx context.Context, d *phases.Dispatch, freed func()) *Asked {
	a, ok := s.spare.Get().(*Asked)
	if !ok {
		a = &Asked{}
	}
	a.session = s
	r := &a.request
	r.ask, r.want, r.freed, r.m, r.fields, r.reply, r.replyFields = hostDispatch, pluginResult, freed, d, dispatchFields, &a.answer, resultFields
	if a.err = begin(ctx, s, r); a.err != nil && ctx.Err() == nil {
		r.stats.Arrived = time.Now()
	}
	r.m = nil
	return a
}

// Answer waits for the hook's answer, which becomes res. When ctx, the one of Send, ends, it notifies the plugin and
// returns at once with a *phases.Error (timeout or cancelled, by ctx's cause) that wraps ctx's error.
func (a *Asked) Answer(ctx context.Context, res *phases.Result) (Stats, error) {
	if a.err == nil {
		a.err = conclude(ctx, a.session, &a.request)
	}
	if a.err == nil && a.answer.err != nil {
		a.err = fromPlugin(a.answer.err)
	}
	stats := a.request.stats
	if a.err != nil {
		return stats, a.err
	}
	a.answer.reportUnknown()
	*res = a.answer.Result
	a.release()
	return stats, nil
}

// release lets the memory of an answered call be used again, unless its frame may still wait to be sent: a plugin can
// answer before it is asked.
func (a *Asked) release() {
	if s, r := a.session, &a.request; r.frame.sent.Load() {
		answered := r.answered
		*a = Asked{}
		r.answered = answered
		s.spare.Put(a)
	}
}

// Dispatch is Send and Answer in one.
func (s *Session) Dispatch(ctx context.Context, d *phases.Dispatch, freed func()) (*phases.Result, Stats, error) {
	var res phases.Result
	stats, err := s.Send(ctx, d, freed).Answer(ctx, &res)
	if err != nil {
		return nil, stats, err
	}
	return &res, stats, nil
}

// CallTool calls a tool under the same terms as Dispatch.
func (s *Session) CallTool(ctx context.Context, c *phases.ToolCall, freed func()) (*phases.ToolResult, Stats, error) {
	var m toolResult
	r := request[phases.ToolCall, toolResult]{
		call: call{ask: hostCallTool, want: pluginToolResult, freed: freed}, m: c, fields: toolCallFields, reply: &m, replyFields: toolResultFields,
	}
	if err := exchange(ctx, s, &r); err != nil {
		return nil, r.stats, err
	}
	if m.err != nil {
		return nil, r.stats, fromPlugin(m.err)
	}
	if len(m.Content) > 0 {
		if err := jsonscan.Check(m.Content, phases.MaxJSONDepth); err != nil {
			return nil, r.stats, s.invalid(fmt.Errorf("content %w", err))
		}
	}
	return &m.ToolResult, r.stats, nil
}

// Ping waits for a sign of life.
func (s *Session) Ping(ctx context.Context) error { return s.urgent(ctx, hostPing) }

// Drain announces the end and returns when the plugin has answered everything; others may still call.
func (s *Session) Drain(ctx context.Context) error { return s.urgent(ctx, hostDrain) }

func (s *Session) urgent(ctx context.Context, ask body) error {
	var m none
	return exchange(ctx, s, &request[none, none]{
		call: call{ask: ask, want: pluginPong}, m: &m, fields: noFields, reply: &m, replyFields: noFields, urgent: true,
	})
}

// Close ends the session and waits for its goroutines.
func (s *Session) Close() {
	s.cancel(errClosed)
	s.tasks.Wait()
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why the session has ended: session_reset or, after a frame that was too large, oversize_reply. It is nil
// before.
func (s *Session) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
