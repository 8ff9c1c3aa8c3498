package wire

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/grapnelhq/grapnel/phases"
)

// FuzzSession lets a plugin say anything, frame by frame, to a host that waits for
// answers of every kind. Whatever comes, each call gets one answer and its slot
// back, each frame is applied, refused or counted, no text that is not clean comes
// through, and the session ends when the plugin has no more to say.
//
// The plugin's frames are written one behind the other, each behind its length
// in two bytes.
func FuzzSession(f *testing.F) {
	for _, frames := range capturedFrames(f) {
		f.Add(joined(frames...))
	}
	f.Fuzz(func(t *testing.T, traffic []byte) {
		stream := newScriptedStream(t, split(traffic))
		host := &careful{t: t}
		var dropped atomic.Int64
		s := scriptedSession(stream, HostOptions{
			Incarnation: fuzzIncarnation, Instance: "fuzzed", Host: host, OnDropped: func(Dropped, uint64) { dropped.Add(1) },
		})
		var freed atomic.Int64
		var wait sync.WaitGroup
		for _, ask := range asks(t, s, func() { freed.Add(1) }) {
			wait.Go(ask)
			<-stream.sent // one after the other, so that each has always the same id
		}
		close(stream.speak)
		wait.Wait() // each call is answered, if only because the session has ended
		<-s.Done()
		s.Close()
		if phases.CodeOf(s.Err()) != phases.CauseSessionReset {
			t.Errorf("the session ended with %v", s.Err())
		}
		if n := freed.Load(); n != freeing {
			t.Errorf("%d slots were given back, of %d", n, freeing)
		}
		if n := dropped.Load(); n > int64(len(stream.frames)) {
			t.Errorf("%d of %d frames were dropped", n, len(stream.frames))
		}
	})
}

// fuzzIncarnation is the number of the plugin's start in a fuzzed session.
const fuzzIncarnation = 7

// freeing is how many of the asks hold a slot.
const freeing = 4

// asks are calls of every kind, each with a check of what may come of it.
func asks(t *testing.T, s *Session, freed func()) []func() {
	dispatch := func() {
		res, _, err := s.Dispatch(t.Context(), textDispatch("x"), freed)
		checkCoded(t, err)
		if err == nil {
			checkClean(t, res)
		}
	}
	return []func(){
		dispatch, dispatch, dispatch,
		func() {
			res, _, err := s.CallTool(t.Context(), &phases.ToolCall{Tool: "t", Arguments: raw(`{}`)}, freed)
			checkCoded(t, err)
			if err == nil && len(res.Content) > 0 && !json.Valid(res.Content) {
				t.Errorf("the tool's answer %q is no JSON", res.Content)
			}
		},
		func() {
			_, err := s.Configure(t.Context(), &phases.Configuration{Instance: "fuzzed", Config: raw(`{}`)})
			checkCoded(t, err)
		},
		func() { checkCoded(t, s.Ping(t.Context())) },
	}
}

// checkCoded: an error has a code, whatever the plugin says.
func checkCoded(t *testing.T, err error) {
	if err != nil && phases.CodeOf(err) == "" {
		t.Errorf("an error without a code: %v", err)
	}
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

// careful is a host that answers, and looks at what it is asked.
type careful struct{ t *testing.T }

var _ phases.Host = (*careful)(nil)

func (h *careful) Call(_ context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	if len(params) > 0 && !json.Valid(params) {
		h.t.Errorf("the host is asked %s.%s with %q", service, method, params)
	}
	return raw(`{"ok":true}`), nil
}

func (h *careful) Invalidate(_ context.Context, what phases.Invalidation) error {
	checkClean(h.t, what)
	return nil
}

// scriptedStream is a stream whose other side says what was written for it, once
// it may, and then ends.
type scriptedStream struct {
	grpc.ClientStream

	ctx    context.Context
	frames [][]byte
	next   int
	speak  chan struct{}
	sent   chan struct{}
}

func newScriptedStream(t *testing.T, frames [][]byte) *scriptedStream {
	return &scriptedStream{ctx: t.Context(), frames: frames, speak: make(chan struct{}), sent: make(chan struct{}, 1)}
}

// scriptedSession is a session behind its Hello.
func scriptedSession(stream *scriptedStream, o HostOptions) *Session {
	s := &Session{o: o.withDefaults(), done: make(chan struct{}), stream: stream}
	s.calls.last = 1 // of Hello
	stream.ctx, s.cancel = context.WithCancelCause(stream.ctx)
	s.ctx = stream.ctx
	s.writer = newWriter(stream, s.o.Frame)
	s.writer.incarnation = s.o.Incarnation
	s.tasks.Go(s.writer.run)
	s.tasks.Go(s.readAll)
	return s
}

func (s *scriptedStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ClientStream: the frame is read and its memory given
// back, as gRPC does.
func (s *scriptedStream) SendMsg(m any) error {
	data, err := newCodec().Marshal(m)
	if err != nil {
		return err
	}
	data.Free()
	select {
	case s.sent <- struct{}{}:
	default: // answers to the plugin, which nobody waits for
	}
	return nil
}

func (s *scriptedStream) RecvMsg(m any) error {
	select {
	case <-s.speak:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	if s.next == len(s.frames) {
		return io.EOF
	}
	s.next++
	return newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(s.frames[s.next-1])}, m)
}

// split cuts traffic into frames; joined is the inverse.
func split(traffic []byte) [][]byte {
	var frames [][]byte
	for len(traffic) >= 2 {
		n := min(int(binary.BigEndian.Uint16(traffic)), len(traffic)-2)
		frames = append(frames, traffic[2:2+n])
		traffic = traffic[2+n:]
	}
	return frames
}

func joined(frames ...[]byte) []byte {
	var traffic []byte
	for _, f := range frames {
		traffic = append(binary.BigEndian.AppendUint16(traffic, uint16(len(f))), f...)
	}
	return traffic
}

// capturedFrames are what plugins send: good answers to all that asks does, and what those that break the rules put
// between them.
func capturedFrames(f *testing.F) [][][]byte {
	f.Helper()
	section := &phases.PromptSection{SectionID: "echo", Content: "captured"}
	answer := &result{Result: phases.Result{Contributions: []phases.Contribution{section}}}
	tool := &toolResult{ToolResult: phases.ToolResult{Content: raw(`{"a":1}`)}}
	d := &configured{description: &phases.Description{Name: "test", Version: "1"}}
	good := [][]byte{
		frameOf(2, pluginResult, answer, resultFields), frameOf(3, pluginResult, answer, resultFields), frameOf(4, pluginResult, answer, resultFields),
		frameOf(5, pluginToolResult, tool, toolResultFields), frameOf(6, pluginConfigured, d, configuredFields), frameOf(7, pluginPong, &none{}, noFields),
	}
	id := func(n byte) []byte { return []byte{8, n, 16, fuzzIncarnation} }
	bad := [][]byte{
		append(id(1), 0x4a, 0),                                      // Pong where a result belongs
		append(id(2), 0x2a, 4, 0x0a, 2, 0xff, 0xfe),                 // a body that is no message
		append(id(3), 0xff, 0xff),                                   // garbage behind the id
		[]byte("HTTP/1.1 200 OK\r\n"),                               // nothing of ours
		append(id(4), 0xf2, 0x01, 1, 'x'),                           // a body of a later version
		append(id(5), 0x52, 2, 8, 5),                                // does not understand a Dispatch
		append(id(9), 0x3a, 9, 8, 1, 0x12, 1, 's', 0x1a, 1, 'm', 0), // asks the host
		append(id(0), 0x42, 3, 0x0a, 1, 'k'),                        // forgets a key
		{8, 1, 16, fuzzIncarnation + 1, 0x2a, 0},                    // of another start
		{},
	}
	twice := append(append([][]byte{}, good...), good...)
	mixed := append(append([][]byte{}, bad...), good...)
	return [][][]byte{nil, good, bad, twice, mixed}
}

func frameOf[T any](id uint64, b body, m *T, fields func(*form, *T)) []byte {
	f := form{writing: true}
	putFrame(&f, id, fuzzIncarnation, b, m, fields)
	return f.out
}
