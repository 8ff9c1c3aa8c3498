package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// A stranger is a plugin written against the contract alone, with generated
// code and the usual gRPC options, and as badly as a test wants. act is called
// for each frame behind Hello, in the reader.
type stranger struct {
	pluginpb.UnimplementedPluginServer
	act func(s *strangerSession, in *pluginpb.HostFrame) error
	// before, if set, replaces the description.
	before func(s *strangerSession, in *pluginpb.HostFrame) error
}

type strangerSession struct {
	grpc.BidiStreamingServer[pluginpb.HostFrame, pluginpb.PluginFrame]
	frames []*pluginpb.HostFrame // dispatches so far
}

// Session implements the service.
func (p *stranger) Session(stream grpc.BidiStreamingServer[pluginpb.HostFrame, pluginpb.PluginFrame]) error {
	s := &strangerSession{BidiStreamingServer: stream}
	for {
		in, err := stream.Recv()
		if err != nil {
			return nil // the host has closed
		}
		switch {
		case in.GetHello() != nil && p.before != nil:
			err = p.before(s, in)
		case in.GetHello() != nil:
			err = s.Send(&pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Describe{
				Describe: &pluginpb.Describe{Description: &pluginpb.Description{Name: "stranger", Version: "1"}},
			}})
		default:
			err = p.act(s, in)
		}
		if err != nil {
			return err
		}
	}
}

// answer sends a noop as the result of a frame.
func (s *strangerSession) answer(in *pluginpb.HostFrame) error {
	return s.Send(resultFrame(in.Id, in.Incarnation, &pluginpb.Result{Contributions: []*pluginpb.Contribution{{Kind: &pluginpb.Contribution_Noop{}}}}))
}

func resultFrame(id, incarnation uint64, r *pluginpb.Result) *pluginpb.PluginFrame {
	return &pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_Result{Result: r}}
}

// bytesCodec lets a stranger send any bytes as a frame.
type bytesCodec struct{ encoding.CodecV2 }

func (c bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (s *strangerSession) sendBytes(data []byte) error { return s.SendMsg(data) }

// openStranger opens a session with a stranger. Whatever it does, the host
// notes what it dropped.
func openStranger(t *testing.T, p *stranger, o HostOptions) (*Session, chan Dropped) {
	t.Helper()
	dropped := make(chan Dropped, 1000)
	o.OnDropped = func(d Dropped) { dropped <- d }
	return open(t, strangerConn(t, p), o), dropped
}

func strangerConn(t *testing.T, p *stranger) *grpc.ClientConn {
	t.Helper()
	srv := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{encoding.GetCodecV2("proto")}), grpc.MaxSendMsgSize(1<<30))
	pluginpb.RegisterPluginServer(srv, p)
	return listen(t, srv, 0)
}

// next returns what was dropped next.
func next(t *testing.T, dropped chan Dropped) Dropped {
	t.Helper()
	select {
	case d := <-dropped:
		return d
	case <-deadline(t).Done():
		t.Fatal("nothing was dropped")
		return 0
	}
}

// TestWrongAnswers: a plugin sends something wrong before or behind the right
// answer. The call gets the right one, the rest is counted.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	type act = func(s *strangerSession, in *pluginpb.HostFrame) error
	bad := &pluginpb.Result{Contributions: []*pluginpb.Contribution{{ContributionId: "wrong", Kind: &pluginpb.Contribution_Noop{}}}}
	cases := []struct {
		name string
		act  act
		want []Dropped
	}{
		{"twice", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.answer(in), s.Send(resultFrame(in.Id, in.Incarnation, bad)))
		}, []Dropped{DroppedDouble}},
		{"of another incarnation", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(resultFrame(in.Id, in.Incarnation-1, bad)), s.Send(resultFrame(in.Id, 0, bad)), s.answer(in))
		}, []Dropped{DroppedStale, DroppedStale}},
		{"of an unknown id", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(resultFrame(in.Id+1000, in.Incarnation, bad)), s.Send(resultFrame(0, in.Incarnation, bad)), s.answer(in))
		}, []Dropped{DroppedUnknown, DroppedUnknown}},
		{"to an earlier frame", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(resultFrame(1, in.Incarnation, bad)), s.answer(in))
		}, []Dropped{DroppedDouble}},
		{"no body", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(&pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation}), s.answer(in))
		}, []Dropped{DroppedUnsupported}},
		{"an unsupported that fits nothing", func(s *strangerSession, in *pluginpb.HostFrame) error {
			frame := &pluginpb.PluginFrame{Id: in.Id + 9, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Unsupported{Unsupported: &pluginpb.Unsupported{}}}
			return errors.Join(s.Send(frame), s.answer(in))
		}, []Dropped{DroppedUnsupported}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
				if in.GetDispatch() == nil {
					return nil // the host's own Unsupported
				}
				return c.act(s, in)
			}}
			s, dropped := openStranger(t, p, HostOptions{})
			f := newFreed()
			res, _, err := s.Dispatch(deadline(t), textDispatch("x"), f.call)
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Contributions[0].Head().ContributionID; got != "" {
				t.Errorf("a wrong answer was applied: %q", got)
			}
			f.wait(t)
			var got []Dropped
			for range c.want {
				got = append(got, next(t, dropped))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInvalidAnswers: the call fails with invalid_reply, and the session lives.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	body := func(s string) func(*strangerSession, *pluginpb.HostFrame) error {
		return func(st *strangerSession, in *pluginpb.HostFrame) error {
			frame := []byte{8, byte(in.Id), 16, byte(in.Incarnation), 42, byte(len(s))}
			return st.sendBytes(append(frame, s...))
		}
	}
	cases := []struct {
		name string
		act  func(*strangerSession, *pluginpb.HostFrame) error
		want string
	}{
		{"invalid UTF-8", body("\x0a\x04\x0a\x02\xff\xfe"), "not valid UTF-8"},
		{"NUL", body("\x0a\x03\x0a\x01\x00"), "with a NUL"},
		{"lone surrogate", body("\x0a\x05\x0a\x03\xed\xa0\x80"), "not valid UTF-8"},
		{"bidi override", body("\x0a\x05\x0a\x03\xe2\x80\xae"), "reorders text"},
		{"body that is cut", body("\x0a\x7fabc"), "cut short"},
		{"garbage as body", body("\xff\xff\xff\xff"), "no field tag"},
		{"garbage behind the id", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return s.sendBytes([]byte{8, byte(in.Id), 0xff, 0xff})
		}, "not a protobuf message"},
		{"only garbage", func(s *strangerSession, _ *pluginpb.HostFrame) error {
			return s.sendBytes([]byte("HTTP/1.1 200 OK\r\n"))
		}, "not a protobuf message"},
		{"another body", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return s.Send(&pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Pong{}})
		}, "has the body 9 where 5 belongs"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := true
			p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
				if !first {
					return s.answer(in)
				}
				first = false
				return c.act(s, in)
			}}
			s, _ := openStranger(t, p, HostOptions{})
			f := newFreed()
			_, _, err := s.Dispatch(deadline(t), textDispatch("x"), f.call)
			checkCode(t, err, phases.CauseInvalidReply)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			f.wait(t)
			if _, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil); err != nil {
				t.Errorf("the session did not live on: %v", err)
			}
		})
	}
}

func TestUnsupportedCall(t *testing.T) {
	t.Parallel()
	refuse := func(s *strangerSession, in *pluginpb.HostFrame, body uint64) error {
		return s.Send(&pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Unsupported{Unsupported: &pluginpb.Unsupported{Body: body}}})
	}
	p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		if in.GetCallTool() != nil {
			return errors.Join(refuse(s, in, uint64(hostCancel)), refuse(s, in, uint64(hostCallTool)))
		}
		return s.answer(in)
	}}
	s, dropped := openStranger(t, p, HostOptions{})
	_, _, err := s.CallTool(deadline(t), &phases.ToolCall{Tool: "t"}, nil)
	checkPluginCode(t, err, "unsupported")
	if got := next(t, dropped); got != DroppedUnsupported {
		t.Errorf("dropped as %v", got)
	}
}

// TestUnsupportedCancel: a plugin that does not know Cancel still owes its
// answer, and the slot is held until then.
func TestUnsupportedCancel(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		if in.GetCancel() == nil {
			close(started)
			return nil
		}
		frame := &pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Unsupported{Unsupported: &pluginpb.Unsupported{}}}
		if err := s.Send(frame); err != nil {
			return err
		}
		<-release
		return s.answer(in)
	}}
	s, dropped := openStranger(t, p, HostOptions{})
	ctx, cancel := context.WithCancel(deadline(t))
	go func() { <-started; cancel() }()
	f := newFreed()
	_, _, err := s.Dispatch(ctx, textDispatch("x"), f.call)
	checkCode(t, err, phases.CauseCancelled)
	if got := next(t, dropped); got != DroppedUnsupported || f.count.Load() != 0 {
		t.Errorf("dropped as %v, freed %d times", got, f.count.Load())
	}
	close(release)
	f.wait(t)
	if got := next(t, dropped); got != DroppedLate {
		t.Errorf("dropped as %v, want late", got)
	}
}

// TestUnknownBodies: each side answers what it does not know.
func TestUnknownBodies(t *testing.T) {
	t.Parallel()
	answered := make(chan *pluginpb.HostFrame, 1)
	p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		if in.GetUnsupported() != nil {
			answered <- in
			return nil
		}
		return errors.Join(s.sendBytes([]byte{8, 77, 16, byte(in.Incarnation), 0xf2, 0x01, 1, 'x'}), s.answer(in))
	}}
	s, _ := openStranger(t, p, HostOptions{})
	if _, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil); err != nil {
		t.Fatal(err)
	}
	want := &pluginpb.HostFrame{Id: 77, Incarnation: 7, Body: &pluginpb.HostFrame_Unsupported{Unsupported: &pluginpb.Unsupported{Body: 30}}}
	if got := <-answered; !proto.Equal(want, got) {
		t.Errorf("the host answered %v, want %v", got, want)
	}
}

// TestStrangeHost speaks to our plugin side by generated code.
func TestStrangeHost(t *testing.T) {
	t.Parallel()
	conn := serve(t, &testPlugin{}, ServeOptions{}, 0)
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	stream, err := pluginpb.NewPluginClient(conn).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(in *pluginpb.HostFrame) *pluginpb.PluginFrame {
		if err := stream.Send(in); err != nil {
			t.Fatal(err)
		}
		out, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	hello := func(version uint64) *pluginpb.HostFrame {
		return &pluginpb.HostFrame{Id: 1, Incarnation: 5, Body: &pluginpb.HostFrame_Hello{Hello: &pluginpb.Hello{ProtocolVersion: version, MaxFrameBytes: 1 << 20}}}
	}
	if got := ask(hello(2)).GetDescribe().GetError().GetCode(); got != "version_mismatch" {
		t.Errorf("another version: got the code %q", got)
	}
	if got := ask(hello(1)); got.GetDescribe().GetDescription().GetName() != "test" || got.GetIncarnation() != 5 || got.GetId() != 1 {
		t.Errorf("described as %v", got)
	}
	odd := &pluginpb.HostFrame{Id: 9, Incarnation: 5}
	odd.ProtoReflect().SetUnknown([]byte{0xf2, 0x01, 1, 'x'})
	if got := ask(odd).GetUnsupported().GetBody(); got != 30 {
		t.Errorf("an unknown body: got %d, want 30", got)
	}
	call := &pluginpb.HostFrame{Id: 10, Incarnation: 5, Body: &pluginpb.HostFrame_Dispatch{Dispatch: &pluginpb.Dispatch{Hook: "h", Phase: "session.end"}}}
	want := &pluginpb.PluginFrame{Id: 10, Incarnation: 5, Body: &pluginpb.PluginFrame_Result{Result: &pluginpb.Result{
		Contributions: []*pluginpb.Contribution{{Kind: &pluginpb.Contribution_PromptSection{PromptSection: &pluginpb.PromptSection{
			SectionId: "echo", Title: "Echo", Stability: "dynamic", Content: "h",
		}}}},
	}}}
	if got := ask(call); !proto.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
	bad := &pluginpb.HostFrame{Id: 11, Incarnation: 5, Body: &pluginpb.HostFrame_Dispatch{Dispatch: &pluginpb.Dispatch{Hook: "a\x00b"}}}
	if got := ask(bad).GetResult().GetError().GetPluginCode(); got != "invalid_request" {
		t.Errorf("text with a NUL: got the code %q", got)
	}
	if got := ask(&pluginpb.HostFrame{Id: 12, Incarnation: 5, Body: &pluginpb.HostFrame_Drain{}}); got.GetPong() == nil || got.GetId() != 12 {
		t.Errorf("drain was answered by %v", got)
	}
}

// TestOversizeFrames: a plugin that ignores the limit loses its session. The
// call that the frame belonged to is known, whatever its size.
func TestOversizeFrames(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"a little": DefaultFrame + 1, "a lot": 100 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const calls = 5
			p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
				if s.frames = append(s.frames, in); len(s.frames) < calls {
					return nil
				}
				big := &pluginpb.Contribution{Kind: &pluginpb.Contribution_PromptSection{PromptSection: &pluginpb.PromptSection{Content: strings.Repeat("x", size)}}}
				culprit := s.frames[2]
				return s.Send(resultFrame(culprit.Id, culprit.Incarnation, &pluginpb.Result{Contributions: []*pluginpb.Contribution{big}}))
			}}
			s, _ := openStranger(t, p, HostOptions{})
			var mu sync.Mutex
			got := map[phases.Cause]int{}
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					_, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
					mu.Lock()
					defer mu.Unlock()
					got[phases.CodeOf(err)]++
				})
			}
			wg.Wait()
			want := map[phases.Cause]int{phases.CauseOversizeReply: 1, phases.CauseSessionReset: calls - 1}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			<-s.Done()
			checkCode(t, s.Err(), phases.CauseOversizeReply)
		})
	}
}

func TestOversizeFrameOfTheOnlyCall(t *testing.T) {
	t.Parallel()
	p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		return s.Send(&pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_ToolResult{ToolResult: &pluginpb.ToolResult{ContentJson: make([]byte, 8<<20)}}})
	}}
	s, _ := openStranger(t, p, HostOptions{})
	_, _, err := s.CallTool(deadline(t), &phases.ToolCall{Tool: "t"}, nil)
	checkCode(t, err, phases.CauseOversizeReply)
}

func TestSessionsThatBreak(t *testing.T) {
	t.Parallel()
	cases := map[string]error{"ended": io.EOF, "with a status": status.Error(codes.Internal, "oh"), "panics": nil}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &stranger{act: func(*strangerSession, *pluginpb.HostFrame) error {
				if errors.Is(end, io.EOF) {
					return status.Error(codes.OK, "")
				}
				return end
			}}
			if end == nil {
				p.act = func(s *strangerSession, _ *pluginpb.HostFrame) error { return status.Error(codes.Unknown, "panic") }
			}
			if errors.Is(end, io.EOF) {
				p.act = func(*strangerSession, *pluginpb.HostFrame) error { return io.EOF }
			}
			s, _ := openStranger(t, p, HostOptions{})
			f := newFreed()
			_, _, err := s.Dispatch(deadline(t), textDispatch("x"), f.call)
			checkCode(t, err, phases.CauseSessionReset)
			f.wait(t)
			checkCode(t, s.Err(), phases.CauseSessionReset)
		})
	}
}

// TestBadBeginnings: Open fails in time and leaves nothing behind.
func TestBadBeginnings(t *testing.T) {
	t.Parallel()
	short, cancel := context.WithCancel(deadline(t))
	cases := []struct {
		name   string
		ctx    context.Context
		before func(*strangerSession, *pluginpb.HostFrame) error
		want   phases.Cause
	}{
		{"mute", short, func(*strangerSession, *pluginpb.HostFrame) error { cancel(); return nil }, phases.CauseCancelled},
		{"ends", deadline(t), func(*strangerSession, *pluginpb.HostFrame) error { return status.Error(codes.Unavailable, "no") }, phases.CauseSessionReset},
		{"empty description", deadline(t), func(s *strangerSession, in *pluginpb.HostFrame) error {
			return s.Send(&pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Describe{}})
		}, phases.CauseInvalidReply},
		{"error", deadline(t), func(s *strangerSession, in *pluginpb.HostFrame) error {
			return s.Send(&pluginpb.PluginFrame{Id: in.Id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Describe{
				Describe: &pluginpb.Describe{Error: &pluginpb.Error{Code: "version_mismatch", Message: "too old"}},
			}})
		}, phases.CauseVersionMismatch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(c.ctx, strangerConn(t, &stranger{before: c.before}), HostOptions{Incarnation: 1})
			checkCode(t, err, c.want)
		})
	}
}

func TestNoSuchService(t *testing.T) {
	t.Parallel()
	_, err := Open(deadline(t), listen(t, grpc.NewServer(), 0), HostOptions{})
	checkCode(t, err, phases.CauseSessionReset)
}

// TestFloodOfHostCalls: a plugin that asks without end and reads nothing loses
// its session; the reader never blocks.
func TestFloodOfHostCalls(t *testing.T) {
	t.Parallel()
	p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		for id := uint64(1); ; id++ {
			frame := &pluginpb.PluginFrame{Id: id, Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_HostCall{HostCall: &pluginpb.HostCall{Service: "s"}}}
			if err := s.Send(frame); err != nil {
				return err
			}
		}
	}}
	release := make(chan struct{})
	defer close(release)
	host := &services{call: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}}
	s, _ := openStranger(t, p, HostOptions{Host: host})
	_, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
	checkCode(t, err, phases.CauseSessionReset)
	if err == nil || !errors.Is(err, errFlooded) {
		t.Errorf("ended by %v, want %v", err, errFlooded)
	}
}

// TestInvalidationsWithoutID are not answered; those beyond the limit are
// counted.
func TestInvalidationsWithoutID(t *testing.T) {
	t.Parallel()
	p := &stranger{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		frame := &pluginpb.PluginFrame{Incarnation: in.Incarnation, Body: &pluginpb.PluginFrame_Invalidate{Invalidate: &pluginpb.Invalidate{Parent: 12345}}}
		return errors.Join(s.Send(frame), s.Send(frame), s.answer(in))
	}}
	entered := make(chan struct{}, 2)
	host := &services{invalidate: func(ctx context.Context, _ phases.Invalidation) error {
		entered <- struct{}{}
		<-ctx.Done()
		return nil
	}}
	s, dropped := openStranger(t, p, HostOptions{Host: host, HostCalls: 1})
	if _, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	if got := next(t, dropped); got != DroppedInvalidation {
		t.Errorf("dropped as %v", got)
	}
}
