package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// defaultHostCalls is the limit of host calls in flight.
const defaultHostCalls = 64

// HostOptions says how a host opens a session. The zero value of each field is
// its default.
type HostOptions struct {
	// Incarnation is the number of this start of the plugin. Answers of another
	// one are dropped.
	Incarnation uint64
	// Instance is the operator's name of the plugin, for errors.
	Instance string
	// Frame is the longest frame in bytes, DefaultFrame if 0, at most MaxFrame.
	Frame int
	// HostCalls is how many host calls may be in flight, 64 if 0. More are
	// answered "overloaded".
	HostCalls int
	// Features are those that the host has, phases.Features() if nil.
	Features []string
	// Host answers host calls; without one they are refused. Its methods run in
	// goroutines of their own. The context they get descends from that of the
	// Dispatch or CallTool which the host call belongs to, and ends with the
	// session; they must return when it ends, for Close waits for them.
	Host phases.Host
	// OnDropped is told what was not applied. It runs in the reader: it must be
	// fast and must not call the session.
	OnDropped func(Dropped)
}

func (o HostOptions) withDefaults() HostOptions {
	o.Frame = frameLimit(o.Frame)
	if o.HostCalls <= 0 {
		o.HostCalls = defaultHostCalls
	}
	if o.Features == nil {
		o.Features = phases.Features()
	}
	if o.OnDropped == nil {
		o.OnDropped = func(Dropped) {}
	}
	return o
}

// Stats are the sizes of one call's frames.
type Stats struct {
	// BytesIn went to the plugin and BytesOut came back.
	BytesIn  int
	BytesOut int
}

// Session is the host's side of one session with a plugin process:
//
//  1. Open says Hello and waits for the description.
//  2. Configure hands over the configuration; it may be called again.
//  3. Dispatch, CallTool and Ping, from any number of goroutines.
//  4. Drain waits until all calls are answered.
//  5. Close ends it. It is safe at any time, and more than once.
//
// Done is closed when the session has ended, for whatever reason; Err says
// which. A session that has ended fails all calls with that error; another one
// may be opened on the same connection.
type Session struct {
	o           HostOptions
	stream      grpc.ClientStream
	cancel      context.CancelCauseFunc
	writer      *writer
	calls       calls
	tap         *tap // nil if the connection has none
	description *phases.Description

	serving serving
	tasks   sync.WaitGroup // reader, writer and host calls
	done    chan struct{}
	err     error // set before done is closed
}

// errClosed is the cause of a session's end by Close.
var errClosed = errors.New("the session was closed")

// Open starts a session on a connection to a plugin process and returns when
// the plugin has described itself. ctx bounds only that; its values go on to
// host calls outside of a dispatch. A plugin that requires a feature which the
// host lacks is a version_mismatch.
func Open(ctx context.Context, conn *ClientConn, o HostOptions) (*Session, error) {
	s := &Session{o: o.withDefaults(), done: make(chan struct{})}
	var lasting context.Context
	lasting, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	var err error
	s.stream, err = conn.NewStream(lasting, &pluginpb.Plugin_ServiceDesc.Streams[0], pluginpb.Plugin_Session_FullMethodName, callOptions(s.o.Frame)...)
	stop() // from here on each wait has the context itself
	if err != nil {
		s.cancel(err)
		if ctx.Err() != nil {
			return nil, left(ctx, s.who())
		}
		return nil, s.broken(phases.CauseSessionReset, "opened no session", err)
	}
	if p, ok := peer.FromContext(s.stream.Context()); ok { //nolint:contextcheck // the stream's, which descends from ctx
		s.tap = tapOf(p.AuthInfo)
	}
	s.writer = newWriter(s.stream, s.o.Frame)
	s.tasks.Go(s.writer.run)
	s.tasks.Go(s.readAll)
	if err := s.hello(ctx); err != nil {
		_ = s.Close() // always nil
		return nil, err
	}
	return s, nil
}

// hello introduces the host and waits for the description.
func (s *Session) hello(ctx context.Context) error {
	m := hello{version: ProtocolVersion, features: s.o.Features, frame: uint64(s.o.Frame), hostCalls: uint64(s.o.HostCalls)} //nolint:gosec // positive
	var d described
	if err := exchange(ctx, s, &request[hello, described]{
		ask: hostHello, m: &m, fields: helloFields, want: pluginDescribe, reply: &d, replyFields: describeFields,
	}); err != nil {
		return err
	}
	switch {
	case d.err != nil && d.err.Code == phases.CauseVersionMismatch:
		return refusesVersion(s.o.Instance, d.err)
	case d.err != nil:
		return fromPlugin(d.err)
	case d.description == nil:
		return phases.Errorf(phases.CauseInvalidReply, "plugin %q did not describe itself", s.o.Instance)
	}
	s.description = d.description
	return checkFeatures(s.o.Instance, d.description, s.o.Features)
}

// who names the plugin in errors.
func (s *Session) who() string { return fmt.Sprintf("plugin %q", s.o.Instance) }

// Description returns what the plugin said of itself before it was configured.
// It must not be modified.
func (s *Session) Description() *phases.Description { return s.description }

// Configure hands the plugin its configuration and returns the description that
// then counts. A configuration that the plugin refuses is an error which wraps
// a *phases.ConfigError.
func (s *Session) Configure(ctx context.Context, c *phases.Configuration) (*phases.Description, error) {
	var m configured
	if err := exchange(ctx, s, &request[phases.Configuration, configured]{
		ask: hostConfigure, m: c, fields: configureFields, want: pluginConfigured, reply: &m, replyFields: configuredFields,
	}); err != nil {
		return nil, err
	}
	switch {
	case m.rejected != nil:
		return nil, &phases.Error{
			Code: phases.CausePluginError, Message: fmt.Sprintf("plugin %q refuses its configuration", s.o.Instance), Detail: m.rejected.Error(), Err: m.rejected,
		}
	case m.err != nil:
		return nil, fromPlugin(m.err)
	case m.description == nil:
		return nil, phases.Errorf(phases.CauseInvalidReply, "plugin %q did not describe itself once configured", s.o.Instance)
	}
	return m.description, checkFeatures(s.o.Instance, m.description, s.o.Features)
}

// Dispatch calls a hook. When ctx ends it tells the plugin so and returns at
// once, with a *phases.Error (timeout or cancelled, by ctx's cause) that wraps
// ctx's error. freed may be nil; it is called exactly once, perhaps after
// Dispatch has returned and then from the reader, where it must not block: when
// the answer has arrived, when the session has ended, or when nothing was sent.
// The incarnation of d is the session's, and its remaining time is bounded by
// ctx's deadline.
func (s *Session) Dispatch(ctx context.Context, d *phases.Dispatch, freed func()) (*phases.Result, Stats, error) {
	var m result
	r := request[phases.Dispatch, result]{
		ask: hostDispatch, m: d, fields: dispatchFields, want: pluginResult, reply: &m, replyFields: resultFields, freed: freed,
	}
	if err := exchange(ctx, s, &r); err != nil {
		return nil, r.stats, err
	}
	if m.err != nil {
		return nil, r.stats, fromPlugin(m.err)
	}
	m.leftOut()
	return &m.Result, r.stats, nil
}

// CallTool calls a tool, under the same terms as Dispatch.
func (s *Session) CallTool(ctx context.Context, c *phases.ToolCall, freed func()) (*phases.ToolResult, Stats, error) {
	var m toolResult
	r := request[phases.ToolCall, toolResult]{
		ask: hostCallTool, m: c, fields: toolCallFields, want: pluginToolResult, reply: &m, replyFields: toolResultFields, freed: freed,
	}
	if err := exchange(ctx, s, &r); err != nil {
		return nil, r.stats, err
	}
	if m.err != nil {
		return nil, r.stats, fromPlugin(m.err)
	}
	if len(m.Content) > 0 {
		if err := phases.CheckJSON(m.Content, phases.MaxJSONDepth); err != nil {
			return nil, r.stats, s.invalid(fmt.Errorf("content %w", err))
		}
	}
	return &m.ToolResult, r.stats, nil
}

// Ping asks for a sign of life.
func (s *Session) Ping(ctx context.Context) error { return s.urgent(ctx, hostPing) }

// Drain tells the plugin that the end is near, and returns when it has answered
// everything, or when ctx ends. It does not keep others from calling.
func (s *Session) Drain(ctx context.Context) error { return s.urgent(ctx, hostDrain) }

// urgent sends a frame before all others and waits for Pong.
func (s *Session) urgent(ctx context.Context, ask body) error {
	var m none
	return exchange(ctx, s, &request[none, none]{
		ask: ask, m: &m, fields: noFields, want: pluginPong, reply: &m, replyFields: noFields, urgent: true,
	})
}

// Close ends the session and waits for its goroutines.
func (s *Session) Close() error {
	s.cancel(errClosed)
	s.tasks.Wait()
	return nil
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why the session has ended: an *phases.Error, session_reset or, after
// a frame that was too large, oversize_reply. It is nil before.
func (s *Session) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
