package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// lineHost is the host's session, and the plugin's ends as plain streams.
type lineHost struct {
	t   *testing.T
	in  *bufio.Scanner // what the host writes
	out io.Writer
}

// openLineHost opens a session whose plugin is the function, in its own goroutine.
func openLineHost(t *testing.T, frame int, plugin func(h *lineHost)) (*Session, error) {
	t.Helper()
	hosts, ends := linePairs(t)
	h := &lineHost{t: t, in: bufio.NewScanner(ends[0]), out: ends[1]}
	h.in.Buffer(nil, 2*MaxFrame)
	over := make(chan struct{})
	go func() {
		defer close(over)
		plugin(h)
		for h.in.Scan() { // until the host closes
		}
		_, _ = ends[0].Close(), ends[1].Close()
	}()
	s, err := OpenLines(deadline(t), hosts[1], hosts[0], HostOptions{Incarnation: 7, Instance: "tested", Frame: frame})
	t.Cleanup(func() {
		if s != nil {
			s.Close()
		}
		<-over
	})
	return s, err
}

// next is the host's next line, without its remaining time.
func (h *lineHost) next() map[string]any {
	var frame map[string]any
	if h.in.Scan() {
		if err := json.Unmarshal(h.in.Bytes(), &frame); err != nil {
			h.t.Errorf("the host wrote %q: %v", h.in.Text(), err)
		}
	}
	return frame
}

func (h *lineHost) say(lines ...string) {
	for _, line := range lines {
		if _, err := io.WriteString(h.out, line+"\n"); err != nil {
			return // the host has ended the session
		}
	}
}

const describing = `{"id":1,"incarnation":7,"describe":{"description":{"name":"test","version":"1","hooks":[{"name":"h","phase":"tool.pre_call","kinds":["decision"],"timeout_ns":1e6}]}}}`

// TestLinesOfAStrangePlugin: what a plugin writes that no sdk made.
func TestLinesOfAStrangePlugin(t *testing.T) {
	t.Parallel()
	allow := `"result":{"contributions":[{"decision":{"verdict":"allow"}}]}`
	tests := []struct {
		name   string
		answer string // of the dispatch, whose id is 2
		code   phases.Cause
		want   string // in the error
		ends   bool   // the session
	}{
		{"a plain answer", `{"id":2,"incarnation":7,` + allow + `}`, "", "", false},
		{"in another order, with blanks, large numbers in quotes, null, and fields of a later version", `  {"later":[{"a":1}], ` + allow + ` , "incarnation":"7" ,"describe":null,"id":2.0}` + "\r", "", "", false},
		{"a wrong type", `{"id":2,"incarnation":7,"result":{"contributions":[{"decision":{"verdict":1}}]}}`, phases.CauseInvalidReply, "result.contributions.decision.verdict: want a string", false},
		{"a field twice", `{"id":2,"incarnation":7,"result":{"contributions":[{"decision":{"verdict":"deny","verdict":"allow"}}]}}`, phases.CauseInvalidReply, "decision.verdict: want one value, not two", false},
		{"two kinds of a contribution", `{"id":2,"incarnation":7,"result":{"contributions":[{"decision":{"verdict":"deny"},"audit":{}}]}}`, phases.CauseInvalidReply, "audit: want nothing beside decision", false},
		{"two bodies", `{"id":2,"incarnation":7,"result":{},"tool_result":{}}`, phases.CauseInvalidReply, "tool_result: want nothing beside result", false},
		{"a list that is none", `{"id":2,"incarnation":7,"result":{"contributions":{}}}`, phases.CauseInvalidReply, "contributions: want a list", false},
		{"half a surrogate", `{"id":2,"incarnation":7,"result":{"contributions":[{"decision":{"verdict":"\ud800"}}]}}`, phases.CauseInvalidReply, "surrogate", false},
		{"no UTF-8", "{\"id\":2,\"incarnation\":7,\"result\":{\"contributions\":[{\"decision\":{\"verdict\":\"\xff\"}}]}}", phases.CauseInvalidReply, "not valid UTF-8", false},
		{"not understood, by name", `{"id":2,"incarnation":7,"unsupported":{"name":"dispatch"}}`, phases.CausePluginError, "does not understand this call", false},
		{"noise", "hello\x1b[31m, world", phases.CauseInvalidFrame, `it wrote "hello\x1b[31m, world"`, true},
		{"half a frame", `{"id":2,"incarnation":7,"result":{`, phases.CauseInvalidFrame, "not a frame", true},
		{"a line of a log", `{"level":"info","msg":"started"}`, phases.CauseInvalidFrame, "it lacks the incarnation", true},
		{"too long", `{"id":2,"incarnation":7,"result":{"contributions":[{"decision":{"reason":"` + strings.Repeat("x", 64<<10) + `"}}]}}`, phases.CauseOversizeReply, "65536 bytes", true},
		{"too long, and without an end", "\x00" + `{"id":2,"incarnation":7,"result":"` + strings.Repeat("x", 128<<10), phases.CauseOversizeReply, "65536 bytes", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := openLineHost(t, 64<<10, func(h *lineHost) {
				hello := h.next()
				if got := fmt.Sprintf("%v %v %v", hello["id"], hello["incarnation"], hello["hello"].(map[string]any)["transport"]); got != "1 7 stdio" { //nolint:forcetypeassert // or the test panics
					t.Errorf("the host said hello with %s", got)
				}
				h.say(describing)
				h.next()
				answer, endless := strings.CutPrefix(tt.answer, "\x00")
				if endless {
					_, _ = io.WriteString(h.out, answer)
				} else {
					h.say(answer)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := s.Description(); d.Hooks[0].Timeout != phases.Duration(time.Millisecond) {
				t.Errorf("described as %+v", d)
			}
			res, _, err := s.Dispatch(deadline(t), &phases.Dispatch{Hook: "h", Phase: phases.ToolPreCall, Input: &phases.ToolPreCallInput{Tool: "t", Arguments: raw("{\n \"a\": 1 }")}}, nil)
			checkCode(t, err, tt.code)
			if tt.code == "" && (err != nil || len(res.Contributions) != 1) {
				t.Errorf("got %v, %v", res, err)
			}
			if err != nil && !strings.Contains(phases.Whole(err), tt.want) {
				t.Errorf("the error %q lacks %q", phases.Whole(err), tt.want)
			}
			select {
			case <-s.Done():
				if !tt.ends {
					t.Errorf("the session ended: %v", s.Err())
				}
			case <-time.After(map[bool]time.Duration{true: 10 * time.Second}[tt.ends]):
				if tt.ends {
					t.Error("the session goes on")
				}
			}
		})
	}
}

// TestNoiseAtTheStart checks that output before the description is reported as start noise.
func TestNoiseAtTheStart(t *testing.T) {
	t.Parallel()
	_, err := openLineHost(t, 0, func(h *lineHost) { h.say("Listening on port 80") })
	checkCode(t, err, phases.CauseStartNoise)
	if err == nil || !strings.Contains(phases.Whole(err), `it wrote "Listening on port 80"`) || !strings.Contains(err.Error(), "standard error") {
		t.Errorf("the error is %v", phases.Whole(err))
	}
}

// TestLongLineToThePlugin: what the host sends is bounded as a line.
func TestLongLineToThePlugin(t *testing.T) {
	t.Parallel()
	s, err := openLineHost(t, 64<<10, func(h *lineHost) {
		h.next()
		h.say(describing)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Dispatch(deadline(t), textDispatch(strings.Repeat("\n", 40<<10)), nil) // which JSON doubles
	checkCode(t, err, phases.CauseOversizeRequest)
}

// TestLinesFromAStrangeHost speaks to our plugin side by hand.
func TestLinesFromAStrangeHost(t *testing.T) {
	t.Parallel()
	in, lines := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- ServeLines(t.Context(), in, out, &testPlugin{})
		_ = out.Close()
	}()
	read := bufio.NewScanner(answers)
	ask := func(line, want string) {
		t.Helper()
		_, _ = io.WriteString(lines, line+"\n")
		if read.Scan(); read.Text() != want {
			t.Errorf("to %s\n got  %s\n want %s", line, read.Text(), want)
		}
	}
	ask(`{"id":1,"incarnation":3,"hello":{"protocol_version":1,"max_frame_bytes":65536,"transport":"stdio"}}`, `{"id":1,"incarnation":3,"describe":{"description":{"name":"test","version":"1"}}}`)
	ask(`{"id":2,"incarnation":3,"configure":{"instance":"i","config_json":{"a": [1]}}}`, `{"id":2,"incarnation":3,"configured":{"description":{"name":"test","version":"1","doc":"i"}}}`)
	ask(`{"id":3,"incarnation":3,"call_tool":{"tool":"t","arguments_json":{"n":1.50}}}`, `{"id":3,"incarnation":3,"tool_result":{"content_json":{"n":1.50}}}`)
	ask(`{"id":4,"incarnation":3,"teleport":{}}`, `{"id":4,"incarnation":3,"unsupported":{"name":"teleport"}}`)
	ask(`{"id":5,"incarnation":3,"ping":{}}`, `{"id":5,"incarnation":3,"pong":{}}`)
	ask(`{"id":6,"incarnation":3,"drain":{}}`, `{"id":6,"incarnation":3,"pong":{}}`)
	_ = lines.Close()
	if err := <-served; err != nil {
		t.Errorf("at the end of its input it failed: %v", err)
	}
}

// checkJSONForm sends a message to JSON and back, in a frame that may hold it.
func checkJSONForm(t *testing.T, pb proto.Message) {
	t.Helper()
	forms, message := frameForms(), pb.ProtoReflect()
	for form, frame := range map[*jsonMessage]proto.Message{forms.host: &pluginpb.HostFrame{}, forms.plugin: &pluginpb.PluginFrame{}} {
		m := frame.ProtoReflect()
		fields := m.Descriptor().Fields()
		m.Set(fields.Get(0), protoreflect.ValueOfUint64(5))
		m.Set(fields.Get(1), protoreflect.ValueOfUint64(math.MaxUint64))
		for i := 2; i < fields.Len(); i++ {
			if fields.Get(i).Message() == message.Descriptor() {
				m.Set(fields.Get(i), protoreflect.ValueOfMessage(message))
			}
		}
		data, err := proto.Marshal(frame)
		if err != nil {
			t.Fatal(err)
		}
		line, err := form.appendJSON(nil, data)
		if err != nil || !json.Valid(line) || bytes.ContainsAny(line, "\n\r") {
			t.Fatalf("no line of JSON: %s, %v", line, err)
		}
		back, id, _, err := form.parseLine(line)
		got := m.New().Interface()
		if err := errors.Join(err, proto.Unmarshal(back, got)); err != nil || id != 5 || !proto.Equal(frame, got) {
			t.Errorf("%s\nid %d, %v\n%s", line, id, err, cmp.Diff(fmt.Sprint(frame), fmt.Sprint(got)))
		}
	}
}

// FuzzLine: no line harms its reader, and what is read is a frame that can be written again.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		describing, `{"id":2,"incarnation":7,"result":{"contributions":[{"background_job":{"job_kind":"k","payload_json":[1,{"a":null}]}}]}}`,
		`{"incarnation":"3","reminder":{"attributes":{"a":"b"}}}`, `{"id":-1}`, "{", "\xff",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimRight(line, "\n")
		form := frameForms().plugin
		data, id, _, err := form.parseLine(line)
		if err != nil {
			if noise, ok := errors.AsType[*notFrame](err); ok && len(noise.line) != len(line) {
				t.Errorf("the line is not kept: %v", err)
			}
			return
		}
		frame := &pluginpb.PluginFrame{}
		if err := proto.Unmarshal(data, frame); err != nil {
			if strings.Contains(err.Error(), "UTF-8") {
				return
			}
			t.Fatalf("id %d: it is not read as a frame: %v", id, err)
		}
		again, err := form.appendJSON(nil, data)
		if err != nil {
			return // fields of one number were not in a row
		}
		if !json.Valid(again) {
			t.Fatalf("%s became %s", line, again)
		}
	})
}
