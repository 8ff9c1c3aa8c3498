package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestRefusedConfiguration(t *testing.T) {
	t.Parallel()
	p := &testPlugin{configure: func(_ context.Context, c *phases.Configuration) (*phases.Description, error) {
		switch string(c.Config) {
		case `"pointer"`:
			return nil, fmt.Errorf("wrapped: %w", &phases.ConfigError{Pointer: "/a/0", Message: "is odd"})
		case `"error"`:
			return nil, errors.New("no idea")
		case `"panic"`:
			panic("boom")
		default:
			return nil, nil
		}
	}}
	s := open(t, serve(t, p, 0), HostOptions{})
	_, err := s.Configure(deadline(t), &phases.Configuration{Config: raw(`"pointer"`)})
	rejected, ok := errors.AsType[*phases.ConfigError](err)
	if !ok || rejected.Pointer != "/a/0" || rejected.Message != "is odd" {
		t.Errorf("got %v, want a ConfigError", err)
	}
	for config, word := range map[string]string{`"error"`: "error", `"panic"`: "panic", `"nothing"`: "no_answer"} {
		_, err := s.Configure(deadline(t), &phases.Configuration{Config: raw(config)})
		checkPluginCode(t, err, word)
	}
}

func checkPluginCode(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*phases.Error](err)
	if !ok || e.Code != phases.CausePluginError || e.PluginCode != want {
		t.Errorf("got %v, want plugin_error with the code %q", err, want)
	}
}

func TestPluginErrors(t *testing.T) {
	t.Parallel()
	answers := map[string]struct {
		err  error
		code phases.Cause
		word string
	}{
		"plain":     {errors.New("broken"), phases.CausePluginError, "error"},
		"coded":     {&phases.Error{Code: phases.CausePluginError, PluginCode: "upstream", Retryable: true}, phases.CausePluginError, "upstream"},
		"sentence":  {&phases.Error{Code: phases.CausePluginError, PluginCode: "sk-1 \x1b[31m"}, phases.CausePluginError, phases.CodeInvalidCode},
		"busy":      {&phases.Error{Code: phases.CauseOverloaded}, phases.CauseOverloaded, ""},
		"denied":    {&phases.Error{Code: phases.CauseDenied}, phases.CausePluginError, "denied"},
		"cancelled": {&phases.Error{Code: phases.CauseCancelled}, phases.CausePluginError, "cancelled"},
		"crash":     {&phases.Error{Code: phases.CauseCrash, PluginCode: "own"}, phases.CausePluginError, "own"},
	}
	p := &testPlugin{
		dispatch: func(_ context.Context, d *phases.Dispatch) (*phases.Result, error) { return nil, answers[d.Hook].err },
		callTool: func(_ context.Context, c *phases.ToolCall) (*phases.ToolResult, error) {
			if c.Tool == "panic" {
				panic("boom")
			}
			return nil, answers[c.Tool].err
		},
	}
	s := open(t, serve(t, p, 0), HostOptions{})
	for name, want := range answers {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Dispatch(deadline(t), &phases.Dispatch{Hook: name, Phase: phases.SessionEnd}, nil)
			_, _, toolErr := s.CallTool(deadline(t), &phases.ToolCall{Tool: name}, nil)
			for _, err := range []error{err, toolErr} {
				e, ok := errors.AsType[*phases.Error](err)
				if !ok || e.Code != want.code || e.PluginCode != want.word {
					t.Errorf("got %v, want %s/%s", err, want.code, want.word)
				}
			}
		})
	}
	_, _, err := s.CallTool(deadline(t), &phases.ToolCall{Tool: "panic"}, nil)
	checkPluginCode(t, err, "panic")
	if err == nil || !strings.Contains(phases.DetailOf(err), "answers_test.go") || strings.Contains(err.Error(), "boom") {
		t.Errorf("the stack belongs into the detail alone: %s", phases.Whole(err))
	}
}

// TestUnsendableAnswers: whatever a handler returns, the call is answered.
func TestUnsendableAnswers(t *testing.T) {
	t.Parallel()
	p := &testPlugin{
		dispatch: func(_ context.Context, d *phases.Dispatch) (*phases.Result, error) {
			switch d.Hook {
			case "typed nil":
				return &phases.Result{Contributions: []phases.Contribution{(*phases.Policy)(nil)}}, nil
			case "year":
				job := &phases.BackgroundJob{JobKind: "j", NotBefore: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}
				return &phases.Result{Contributions: []phases.Contribution{job}}, nil
			case "nil entry":
				return &phases.Result{Contributions: []phases.Contribution{nil, &phases.Noop{}}}, nil
			}
			return nil, nil
		},
		callTool: func(context.Context, *phases.ToolCall) (*phases.ToolResult, error) {
			return &phases.ToolResult{Content: raw(`{`)}, nil
		},
	}
	s := open(t, serve(t, p, 0), HostOptions{})
	call := func(hook string) (*phases.Result, error) {
		res, _, err := s.Dispatch(deadline(t), &phases.Dispatch{Hook: hook, Phase: phases.SessionEnd}, nil)
		return res, err
	}
	_, err := call("typed nil")
	checkPluginCode(t, err, "panic")
	_, err = call("year")
	checkPluginCode(t, err, "error")
	res, err := call("nil entry")
	if err != nil || len(res.Contributions) != 1 || len(res.Diagnostics) != 1 {
		t.Errorf("nil entry: %v, %v", res, err)
	}
	if res, err := call("nothing"); err != nil || len(res.Contributions) != 0 {
		t.Errorf("nothing: %v, %v", res, err)
	}
	_, _, err = s.CallTool(deadline(t), &phases.ToolCall{Tool: "broken"}, nil)
	if way == overLines { // lines cannot carry invalid JSON
		checkPluginCode(t, err, "error")
	} else {
		checkCode(t, err, phases.CauseInvalidReply)
	}
}

func TestTextOfAnswersIsRepaired(t *testing.T) {
	t.Parallel()
	p := &testPlugin{dispatch: func(context.Context, *phases.Dispatch) (*phases.Result, error) {
		return &phases.Result{Contributions: []phases.Contribution{
			&phases.PromptSection{SectionID: "s", Content: "a\x00b\xffc\u202ed"},
			&phases.Audit{EventKind: "e", Details: raw(`"\u0000"`)},
		}}, nil
	}}
	s := open(t, serve(t, p, 0), HostOptions{})
	res, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &phases.Result{
		Contributions: []phases.Contribution{
			&phases.PromptSection{SectionID: "s", Content: "a\uFFFDb\uFFFDc\uFFFDd"},
			&phases.Audit{EventKind: "e", Details: raw(`"\ufffd"`)},
		},
		Diagnostics: res.Diagnostics,
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(res.Diagnostics) != 1 || res.Diagnostics[0].Code != codeText || !strings.Contains(res.Diagnostics[0].Message, "2 texts") {
		t.Errorf("diagnostics %v", res.Diagnostics)
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := open(t, serve(t, &testPlugin{}, 64<<10), HostOptions{Frame: 64 << 10})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	cases := []struct {
		name string
		ctx  context.Context
		d    *phases.Dispatch
		want phases.Cause
	}{
		{"too long", deadline(t), textDispatch(strings.Repeat("x", 64<<10)), phases.CauseOversizeRequest},
		{"not UTF-8", deadline(t), textDispatch("\xff"), phases.CauseInternal},
		{"given up before", cancelled, textDispatch("x"), phases.CauseCancelled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFreed()
			_, _, err := s.Dispatch(c.ctx, c.d, f.call)
			checkCode(t, err, c.want)
			f.wait(t)
		})
	}
	if _, _, err := s.Dispatch(deadline(t), textDispatch("still here"), nil); err != nil {
		t.Error(err)
	}
}
