package wire

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// A unknown is a plugin written against the contract alone, with generated
// code and the usual gRPC options, and as badly as a test wants. act is called
// for each frame behind Hello, in the reader.
type unknown struct {
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
func (p *unknown) Session(stream grpc.BidiStreamingServer[pluginpb.HostFrame, pluginpb.PluginFrame]) error {
	s := &strangerSession{BidiStreamingServer: stream}
	for {
		in, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the host has closed
		}
		switch {
		case in.GetHello() != nil && p.before != nil:
			err = p.before(s, in)
		case in.GetHello() != nil:
			err = s.Send(&pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Describe{
				Describe: &pluginpb.Describe{Description: &pluginpb.Description{Name: "unknown", Version: "1"}},
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
	return s.Send(resultFrame(in.GetId(), in.GetIncarnation(), &pluginpb.Result{Contributions: []*pluginpb.Contribution{{Kind: &pluginpb.Contribution_Noop{}}}}))
}

func resultFrame(id, incarnation uint64, r *pluginpb.Result) *pluginpb.PluginFrame {
	return &pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_Result{Result: r}}
}

// bytesCodec lets a unknown send any bytes as a frame.
type bytesCodec struct{ encoding.CodecV2 }

func (c bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (s *strangerSession) sendBytes(data []byte) error { return s.SendMsg(data) }

// openStranger opens a session with a unknown. Whatever it does, the host
// notes what it dropped.
func openStranger(t testing.TB, p *unknown, o HostOptions) (*Session, chan Dropped) {
	t.Helper()
	dropped := make(chan Dropped, 1000)
	if o.OnDropped == nil {
		o.OnDropped = func(d Dropped, _ uint64) { dropped <- d }
	}
	return open(t, strangerConn(t, p), o), dropped
}

func strangerConn(t testing.TB, p *unknown) *grpc.ClientConn {
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
		return ""
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
			return errors.Join(s.answer(in), s.Send(resultFrame(in.GetId(), in.GetIncarnation(), bad)))
		}, []Dropped{DroppedDouble}},
		{"of another incarnation", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(resultFrame(in.GetId(), in.GetIncarnation()-1, bad)), s.Send(resultFrame(in.GetId(), 0, bad)), s.answer(in))
		}, []Dropped{DroppedStale, DroppedStale}},
		{"of an unknown id", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(resultFrame(in.GetId()+1000, in.GetIncarnation(), bad)), s.Send(resultFrame(0, in.GetIncarnation(), bad)), s.answer(in))
		}, []Dropped{DroppedUnknown, DroppedUnknown}},
		{"to an earlier frame", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(resultFrame(1, in.GetIncarnation(), bad)), s.answer(in))
		}, []Dropped{DroppedDouble}},
		{"no body", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return errors.Join(s.Send(&pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation()}), s.answer(in))
		}, []Dropped{DroppedUnsupported}},
		{"an unsupported that fits nothing", func(s *strangerSession, in *pluginpb.HostFrame) error {
			frame := &pluginpb.PluginFrame{Id: in.GetId() + 9, Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Unsupported{Unsupported: &pluginpb.Unsupported{}}}
			return errors.Join(s.Send(frame), s.answer(in))
		}, []Dropped{DroppedUnsupported}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
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
			frame := []byte{8, byte(in.GetId()), 16, byte(in.GetIncarnation()), 42, byte(len(s))}
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
			return s.sendBytes([]byte{8, byte(in.GetId()), 0xff, 0xff})
		}, "not a protobuf message"},
		{"only garbage", func(s *strangerSession, _ *pluginpb.HostFrame) error {
			return s.sendBytes([]byte("HTTP/1.1 200 OK\r\n"))
		}, "not a protobuf message"},
		{"another body", func(s *strangerSession, in *pluginpb.HostFrame) error {
			return s.Send(&pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Pong{}})
		}, "has the body 9 where 5 belongs"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := true
			p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
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
		return s.Send(&pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Unsupported{Unsupported: &pluginpb.Unsupported{Body: body}}})
	}
	p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
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
	p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		if in.GetCancel() == nil {
			close(started)
			return nil
		}
		frame := &pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Unsupported{Unsupported: &pluginpb.Unsupported{}}}
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
	p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		if in.GetUnsupported() != nil {
			answered <- in
			return nil
		}
		return errors.Join(s.sendBytes([]byte{8, 77, 16, byte(in.GetIncarnation()), 0xf2, 0x01, 1, 'x'}), s.answer(in))
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
	if way == overLines {
		t.Skip("TestLinesFromAStrangeHost is the same for lines")
	}
	conn := serve(t, &testPlugin{}, 0)
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
