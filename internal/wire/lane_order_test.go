//go:build unix

package wire

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// frame sends frames, all at once.
func (l *lane) frame(t testing.TB, all ...proto.Message) {
	t.Helper()
	var batch []*outgoing
	for _, m := range all {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Error(err)
		}
		batch = append(batch, &outgoing{data: &data})
	}
	l.send(batch)
}

// TestLanePongIsLast: the answer to a drain comes behind all other answers, also behind those that are held back
// because more frames are there already.
func TestLanePongIsLast(t *testing.T) {
	t.Parallel()
	host, plugin := lanePair(t)
	srv := grpc.NewServer(ServerOptions(0)...)
	Register(srv, &testPlugin{}, plugin)
	stream, err := pluginpb.NewPluginClient(listen(t, srv, 0)).Session(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	hello := &pluginpb.HostFrame{Id: 1, Incarnation: 7, Body: &pluginpb.HostFrame_Hello{Hello: &pluginpb.Hello{
		ProtocolVersion: ProtocolVersion, Features: []string{featureLane},
	}}}
	if err := stream.Send(hello); err != nil {
		t.Fatal(err)
	}
	if in, err := stream.Recv(); err != nil || !in.GetDescribe().GetLane() {
		t.Fatal(in, err)
	}
	l := laneOver(t, host)
	_ = host.SetDeadline(time.Now().Add(20 * time.Second))
	for id := uint64(2); id < 200; id += 4 {
		var all []proto.Message
		for i := range uint64(3) {
			all = append(all, &pluginpb.HostFrame{Id: id + i, Incarnation: 7, Body: &pluginpb.HostFrame_Dispatch{Dispatch: &pluginpb.Dispatch{
				Subscription: "test.echo", Hook: "echo", Phase: string(phases.RuntimePreContext),
			}}})
		}
		l.frame(t, append(all, &pluginpb.HostFrame{Id: id + 3, Incarnation: 7, Body: &pluginpb.HostFrame_Drain{Drain: &pluginpb.Drain{}}})...)
		for i := range 4 {
			data, _, err := l.next()
			var out pluginpb.PluginFrame
			if err == nil {
				err = proto.Unmarshal(data, &out)
			}
			if pong := out.GetPong() != nil; err != nil || pong != (i == 3) {
				t.Fatalf("frame %d behind the drain %d: %v %v", i, id+3, &out, err)
			}
		}
	}
}

// TestLaneEndsWithItsReader: a session is not over while a caller reads, who may begin a host call.
func TestLaneEndsWithItsReader(t *testing.T) {
	t.Parallel()
	reading, hungUp := make(chan struct{}), make(chan struct{})
	var session atomic.Pointer[Session]
	first := true
	s := onLane(t, HostOptions{OnDropped: func(Dropped, uint64) {
		if first {
			first = false
			close(reading)
			<-hungUp
		}
		if session.Load().Err() != nil {
			t.Error("a frame was read after the session's end")
		}
	}}, func(p *lane) {
		_, _, _ = p.next()
		p.frame(t, resultFrame(98, 7, &pluginpb.Result{}), resultFrame(99, 7, &pluginpb.Result{}))
		_, _, _ = p.next()
		close(hungUp)
	})
	session.Store(s)
	answered := make(chan error)
	go func() {
		_, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
		answered <- err
	}()
	<-reading
	s.Close()
	checkCode(t, <-answered, phases.CauseSessionReset)
}

// TestLaneLastWords: a call that a plugin answered before it died was answered.
func TestLaneLastWords(t *testing.T) {
	t.Parallel()
	for range 5 {
		host, plugin := lanePair(t)
		dead := make(chan struct{})
		s, _ := openStranger(t, &unknown{before: func(s *strangerSession, in *pluginpb.HostFrame) error {
			_ = s.describeLane(in)
			<-dead
			return errClosed
		}}, HostOptions{Lane: host})
		asked := s.Send(deadline(t), textDispatch("x"), nil)
		p := laneOver(t, plugin)
		if _, _, err := p.next(); err != nil {
			t.Fatal(err)
		}
		p.result(t, 2, "x")
		close(dead)
		<-s.Done()
		var res phases.Result
		if _, err := asked.Answer(deadline(t), &res); err != nil {
			t.Error(err)
		}
	}
}

// TestFreedOnArrival: a call is over when its answer is there, although nobody has asked for it yet.
func TestFreedOnArrival(t *testing.T) {
	t.Parallel()
	s := open(t, serve(t, &testPlugin{}, 0), HostOptions{})
	freed := newFreed()
	asked := s.Send(deadline(t), textDispatch("x"), freed.call)
	freed.wait(t)
	var res phases.Result
	if _, err := asked.Answer(deadline(t), &res); err != nil {
		t.Error(err)
	}
}
