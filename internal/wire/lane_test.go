//go:build unix

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// lanePair returns the two ends of a lane.
func lanePair(t testing.TB) (host, plugin net.Conn) {
	t.Helper()
	host, file, err := LanePair()
	if err != nil {
		t.Fatal(err)
	}
	if plugin, err = net.FileConn(file); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	t.Cleanup(func() { _, _ = host.Close(), plugin.Close() })
	return host, plugin
}

func laneOver(t testing.TB, conn net.Conn) *lane {
	t.Helper()
	f := &frames{flushed: func(int) {}}
	l, err := newLane(conn, MaxFrame, f)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLaneFrames: frames of all lengths arrive whole and in order, however the socket splits them and however
// often a read is interrupted.
func TestLaneFrames(t *testing.T) {
	t.Parallel()
	host, plugin := lanePair(t)
	rng := rand.New(rand.NewPCG(16, 1))
	sent := make([][]byte, 400)
	for i := range sent {
		size := []int{rng.IntN(8), rng.IntN(2000), rng.IntN(3 * laneBuffer)}[rng.IntN(3)]
		sent[i] = bytes.Repeat([]byte{byte(i)}, size)
	}
	out := laneOver(t, plugin)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for rest := sent; len(rest) > 0; {
			n := min(1+rng.IntN(5), len(rest))
			var batch []*outgoing
			for _, data := range rest[:n] {
				b := out.frames.Get(len(data))
				*b = append(*b, data...)
				batch = append(batch, &outgoing{data: b})
			}
			out.flush()
			out.send(batch)
			rest = rest[n:]
		}
		out.flush()
	}()
	in := laneOver(t, host)
	for i, try := 0, 0; i < len(sent); try++ {
		_ = host.SetReadDeadline(time.Now().Add(time.Duration(try%3) * 50 * time.Microsecond))
		got, owned, err := in.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil || !bytes.Equal(got, sent[i]) {
			t.Fatalf("frame %d: %d bytes, want %d: %v", i, len(got), len(sent[i]), err)
		}
		if long := len(got) > laneBuffer-laneHead; owned != long {
			t.Errorf("frame %d of %d bytes: owned %v", i, len(got), owned)
		}
		i++
	}
	<-done
	_ = host.SetReadDeadline(time.Time{})
	_ = plugin.Close()
	if _, _, err := in.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// onLane opens a session with a peer that takes the lane and then does what act says.
func onLane(t testing.TB, o HostOptions, act func(plugin *lane)) *Session {
	t.Helper()
	host, plugin := lanePair(t)
	o.Lane = host
	peer := laneOver(t, plugin)
	p := &unknown{before: (*strangerSession).describeLane, act: func(_ *strangerSession, in *pluginpb.HostFrame) error {
		t.Errorf("over gRPC came %v", in)
		return nil
	}}
	s, _ := openStranger(t, p, o)
	go act(peer)
	return s
}

// describeLane takes the lane.
func (s *strangerSession) describeLane(in *pluginpb.HostFrame) error {
	return s.Send(&pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Describe{
		Describe: &pluginpb.Describe{Description: &pluginpb.Description{Name: "test", Version: "1"}, Lane: true},
	}})
}

// TestLaneTooLong: a frame above the limit ends the session, and the call that it belongs to is known.
func TestLaneTooLong(t *testing.T) {
	t.Parallel()
	s := onLane(t, HostOptions{Frame: 1 << 20}, func(p *lane) {
		if _, _, err := p.next(); err != nil {
			t.Error(err)
			return
		}
		data := append([]byte{8, 2, 16, 7}, make([]byte, 2<<20)...) // id 2, incarnation 7
		p.send([]*outgoing{{data: &data}})
	})
	_, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
	checkCode(t, err, phases.CauseOversizeReply)
	checkCode(t, s.Err(), phases.CauseOversizeReply)
}

// TestLaneOfTheDead: a plugin that closes its end loses its session, also while nobody reads for an answer.
func TestLaneOfTheDead(t *testing.T) {
	t.Parallel()
	s := onLane(t, HostOptions{}, func(p *lane) { _ = p.reads.Close() })
	select {
	case <-s.Done():
		checkCode(t, s.Err(), phases.CauseSessionReset)
	case <-deadline(t).Done():
		t.Fatal("the session goes on")
	}
}

// TestLaneOfTheDeaf: callers of a plugin that reads nothing wait no longer than they want to, and Close does not wait
// for it.
func TestLaneOfTheDeaf(t *testing.T) {
	t.Parallel()
	s := onLane(t, HostOptions{}, func(*lane) {})
	text := string(bytes.Repeat([]byte("x"), 1<<20))
	for range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, _, err := s.Dispatch(ctx, textDispatch(text), nil)
		cancel()
		checkCode(t, err, phases.CauseTimeout)
	}
	s.Close()
}

// TestLaneAnswersEarly: a plugin that answers a call before its frame was sent gets every frame once and whole, since
// the memory of a call whose frame waits is not another call's.
func TestLaneAnswersEarly(t *testing.T) {
	t.Parallel()
	const first, early, last = 2, 12, 13
	answer, read := make(chan struct{}), make(chan struct{})
	s := onLane(t, HostOptions{}, func(p *lane) {
		<-answer
		p.result(t, early, "e")
		<-read
		for id := uint64(first); id <= last; id++ {
			data, _, err := p.next()
			var in pluginpb.HostFrame
			if err == nil {
				err = proto.Unmarshal(data, &in)
			}
			text := in.GetDispatch().GetRuntimePreContext().GetUserText().GetValue()
			if err != nil || in.GetId() != id || len(text) != 1<<18 {
				t.Errorf("instead of frame %d came %d with %d bytes: %v", id, in.GetId(), len(text), err)
				return
			}
			if id != early {
				p.result(t, id, text[:1])
			}
		}
	})
	ctx := deadline(t)
	asked := map[uint64]*Asked{}
	send := func(id uint64) {
		asked[id] = s.Send(ctx, textDispatch(strings.Repeat(string(rune('A'+id)), 1<<18)), nil)
	}
	check := func(id uint64, want string) {
		var res phases.Result
		if _, err := asked[id].Answer(ctx, &res); err != nil || echoed(t, &res) != want {
			t.Errorf("%d: %v", id, err)
		}
	}
	for id := uint64(first); id <= early; id++ {
		send(id)
	}
	close(answer)
	check(early, "e")
	send(last)
	close(read)
	for id := uint64(first); id <= last; id++ {
		if id != early {
			check(id, string(rune('A'+id)))
		}
	}
}

// result answers a dispatch with one section.
func (l *lane) result(t testing.TB, id uint64, text string) {
	t.Helper()
	section := &pluginpb.Contribution_PromptSection{PromptSection: &pluginpb.PromptSection{SectionId: "echo", Content: text}}
	data, err := proto.Marshal(resultFrame(id, 7, &pluginpb.Result{Contributions: []*pluginpb.Contribution{{Kind: section}}}))
	if err != nil {
		t.Error(err)
	}
	l.send([]*outgoing{{data: &data}})
}

// TestLaneHandsOver: a handler that waits delays no other call, and its cancellation reaches it.
func TestLaneHandsOver(t *testing.T) {
	t.Parallel()
	if way != overLane {
		t.Skip("it is about the lane")
	}
	entered, ended := make(chan struct{}, 8), make(chan error, 8)
	s := open(t, serve(t, &testPlugin{dispatch: func(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
		if d.Hook != "slow" {
			return echo(d), nil
		}
		entered <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}, 0), HostOptions{})
	if s.lane.Load() == nil {
		t.Fatal("the session has no lane")
	}
	slow := textDispatch("x")
	slow.Hook = "slow"
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _, _ = s.Dispatch(ctx, slow, nil) }()
		<-entered
		for range 200 { // fast ones, in the reader again after a while
			if _, _, err := s.Dispatch(deadline(t), textDispatch("y"), nil); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the slow handler's context ended with %v", err)
		}
	}
}

// FuzzLane sends any bytes to the host, while a caller waits and while none does: the call gets one answer and its slot
// back, no text that is not clean comes through, and the session ends with a reason.
func FuzzLane(f *testing.F) {
	f.Add([]byte{}, true)
	f.Add([]byte{4, 0, 0, 0, 8, 2, 16, 7}, true)                          // no body
	f.Add([]byte{6, 0, 0, 0, 8, 2, 16, 7, 42, 0}, true)                   // an empty result
	f.Add([]byte{10, 0, 0, 0, 8, 2, 16, 7, 42, 4, 10, 2, 255, 254}, true) // a result that is no message
	f.Add([]byte{6, 0, 0, 0, 8, 2, 16, 7, 74, 0}, true)                   // a pong where a result belongs
	f.Add([]byte{8, 0, 0, 0, 8, 2, 16, 7, 242, 1, 1, 'x'}, true)          // a body of a later version
	f.Add([]byte{6, 0, 0, 0, 8, 2, 16, 8, 42, 0}, true)                   // of another start
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 255, 8, 2}, false)            // too long, and cut short
	f.Add([]byte{8, 0, 0, 0, 8, 1, 16, 7, 58, 2, 18, 0, 3, 0, 0}, false)  // a host call, and half a length
	f.Add(bytes.Repeat([]byte{2, 0, 0, 0, 255, 255}, 50), true)           // no protobuf
	f.Fuzz(func(t *testing.T, data []byte, asked bool) {
		s := onLane(t, HostOptions{}, func(p *lane) {
			if asked {
				_, _, _ = p.next()
			}
			_, _ = p.reads.Write(data)
			_ = p.reads.Close()
		})
		if asked {
			freed := newFreed()
			res, _, err := s.Dispatch(deadline(t), textDispatch("x"), freed.call)
			if err != nil && phases.CodeOf(err) == "" {
				t.Errorf("an error without a code: %v", err)
			}
			checkClean(t, res)
			freed.wait(t)
		}
		<-s.Done()
		if code := phases.CodeOf(s.Err()); code != phases.CauseSessionReset && code != phases.CauseOversizeReply {
			t.Errorf("the session ended with %v", s.Err())
		}
	})
}

// checkClean: what was accepted prints as JSON, and holds clean text only.
func checkClean(t *testing.T, accepted any) {
	if _, err := json.Marshal(accepted); err != nil {
		t.Errorf("accepted what has no JSON: %v", err)
	}
	eachText(reflect.ValueOf(accepted), func(s string) {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") {
			t.Errorf("accepted the text %q", s)
		}
	})
}

// eachText calls do for all texts in a value.
func eachText(v reflect.Value, do func(string)) {
	switch v.Kind() { //nolint:exhaustive // the others hold no text
	case reflect.String:
		do(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachText(v.Elem(), do)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			eachText(field, do)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // embedded JSON
			do(string(v.Bytes()))
			return
		}
		for i := range v.Len() {
			eachText(v.Index(i), do)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			eachText(key, do)
			eachText(v.MapIndex(key), do)
		}
	}
}
