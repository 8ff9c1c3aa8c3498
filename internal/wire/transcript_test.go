package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// guard is the plugin of the transcript: it denies the tool "shell".
func guard() *testPlugin {
	d := &phases.Description{
		Name: "house", Version: "1.0.0",
		Hooks: []phases.Hook{{Name: "guard", Phase: phases.ToolPreCall, Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Needs: []string{"arguments"}}},
		Tools: []phases.Tool{{Name: "word_count", Description: "Counts words.", InputSchema: raw(`{"type":"object"}`)}},
	}
	return &testPlugin{
		describe:  func(context.Context) (*phases.Description, error) { return d, nil },
		configure: func(context.Context, *phases.Configuration) (*phases.Description, error) { return d, nil },
		dispatch: func(_ context.Context, call *phases.Dispatch) (*phases.Result, error) {
			if len(call.Withheld) > 0 {
				return nil, &phases.Error{Code: phases.CausePluginError, Message: "the arguments are withheld", PluginCode: "blind"}
			}
			return &phases.Result{Contributions: []phases.Contribution{&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no shell here"}}}, nil
		},
		callTool: func(context.Context, *phases.ToolCall) (*phases.ToolResult, error) {
			return &phases.ToolResult{Content: raw("2")}, nil
		},
	}
}

// tapeLines copies lines and calls note with each before it is passed on.
func tapeLines(from io.Reader, to io.WriteCloser, note func(line string)) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, MaxFrame)
	for in.Scan() {
		note(in.Text())
		if _, err := io.WriteString(to, in.Text()+"\n"); err != nil {
			break
		}
	}
	_ = to.Close()
}

// TestTranscript: docs/WIRE.md shows a whole session as it goes over the lines (-update writes it).
func TestTranscript(t *testing.T) {
	if way != overGRPC {
		t.Skip("once is enough")
	}
	host, plugin := linePairs(t)
	var transcript strings.Builder
	var mu sync.Mutex
	times := regexp.MustCompile(`"remaining_ns":\d+`)
	note := func(who string) func(string) {
		return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&transcript, "%s %s\n", who, times.ReplaceAllString(line, `"remaining_ns":1000000000`))
		}
	}
	in, toPlugin := io.Pipe()
	fromPlugin, out := io.Pipe()
	go tapeLines(plugin[0], toPlugin, note(">"))
	go tapeLines(fromPlugin, plugin[1], note("<"))
	go func() {
		_ = ServeLines(context.Background(), in, out, guard())
		_ = out.Close()
	}()
	s, err := OpenLines(deadline(t), host[1], host[0], HostOptions{Incarnation: 1, Instance: "house"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	converse(t, s)
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	checkDocument(t, "transcript", "```\n"+transcript.String()+"```\n")
}

// converse makes the calls of the transcript.
func converse(t *testing.T, s *Session) {
	t.Helper()
	ctx := deadline(t)
	if _, err := s.Configure(ctx, &phases.Configuration{Instance: "house", Config: raw(`{"mood":"strict"}`)}); err != nil {
		t.Fatal(err)
	}
	d := &phases.Dispatch{
		Subscription: "house.guard", Hook: "guard", Phase: phases.ToolPreCall, Attempt: 1, Generation: 1, Remaining: time.Second,
		Context: phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent, Now: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)},
		Input:   &phases.ToolPreCallInput{Tool: "shell", Arguments: raw(`{"command":"ls"}`)},
		Budget:  phases.AnswerBudget{MaxChars: 20000, MaxBytes: DefaultFrame},
	}
	if _, _, err := s.Dispatch(ctx, d, nil); err != nil {
		t.Fatal(err)
	}
	d.Input, d.Withheld = &phases.ToolPreCallInput{Tool: "shell", Arguments: raw(`{"withheld":true,"chars":16}`)}, []string{"arguments"}
	if _, _, err := s.Dispatch(ctx, d, nil); err == nil {
		t.Error("the guard answered without seeing what it guards")
	}
	if _, _, err := s.CallTool(ctx, &phases.ToolCall{Tool: "word_count", Arguments: raw(`{"text":"two words"}`), Remaining: time.Second}, nil); err != nil {
		t.Fatal(err)
	}
	for _, sign := range []func(context.Context) error{s.Ping, s.Drain} {
		if err := sign(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// checkDocument compares a generated block of docs/WIRE.md, or writes it with -update.
func checkDocument(t *testing.T, name, want string) {
	t.Helper()
	const path = "../../docs/WIRE.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(data), "<!-- made by a test: "+name+" -->\n")
	have, tail, ended := strings.Cut(rest, "<!-- end -->")
	switch {
	case !found || !ended:
		t.Errorf("%s has no block %q", path, name)
	case *update:
		if err := os.WriteFile(path, []byte(head+"<!-- made by a test: "+name+" -->\n"+want+"<!-- end -->"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	case have != want:
		t.Errorf("%s: the block %q is stale (-document +now): go test ./internal/wire -run TestTranscript -update\n%s", path, name, cmp.Diff(have, want))
	}
}
