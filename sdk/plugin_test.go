package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// configurable returns a plugin whose configuration is a JSON string: the word
// of its hook "word" and of its tool.
func configurable() *sdk.Plugin {
	p := plugin(compileHook("fixed", section("fixed")))
	p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
		var word string
		if string(c.Config) == "panic" {
			panic("no configuration")
		}
		if err := json.Unmarshal(c.Config, &word); err != nil {
			return sdk.Setup{}, &phases.ConfigError{Pointer: "/word", Message: "not a word"}
		}
		hook := compileHook("word", section(word))
		if word == "invalid" {
			hook.Timeout = -1
		}
		return sdk.Setup{
			Hooks: []sdk.Hook{hook},
			Tools: []sdk.Tool{{Tool: phases.Tool{Name: "say"}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
				return sdk.Text(word), nil
			}}},
		}, nil
	}
	return p
}

func configure(p *sdk.Plugin, config string) (*phases.Description, error) {
	return p.Configure(context.Background(), &phases.Configuration{Config: json.RawMessage(config)})
}

// state is what a plugin answers now: its hooks and its words.
func state(t *testing.T, p *sdk.Plugin) string {
	t.Helper()
	d, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range hookNames(d) {
		s, _ := ask(t, p, name)[0].(*phases.PromptSection)
		out = append(out, name+"="+s.Content)
	}
	for _, tool := range d.Tools {
		res, err := p.CallTool(t.Context(), &phases.ToolCall{Tool: tool.Name})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tool.Name+"="+string(res.Content))
	}
	return strings.Join(out, " ")
}

func TestConfigureReplacesOrKeeps(t *testing.T) {
	t.Parallel()
	p := configurable()
	if got, want := state(t, p), "fixed=fixed"; got != want {
		t.Errorf("before: %s, want %s", got, want)
	}
	for _, step := range []struct {
		config, want string
		fails        bool
	}{
		{`"one"`, `fixed=fixed word=one say="one"`, false},
		{`"two"`, `fixed=fixed word=two say="two"`, false},
		{`3`, `fixed=fixed word=two say="two"`, true},
		{`"invalid"`, `fixed=fixed word=two say="two"`, true},
		{`panic`, `fixed=fixed word=two say="two"`, true},
		{`"three"`, `fixed=fixed word=three say="three"`, false},
	} {
		d, err := configure(p, step.config)
		if (err != nil) != step.fails {
			t.Fatalf("%s: error %v", step.config, err)
		}
		if err == nil && !cmp.Equal(hookNames(d), []string{"fixed", "word"}) {
			t.Errorf("%s: described %v", step.config, hookNames(d))
		}
		if got := state(t, p); got != step.want {
			t.Errorf("after %s: %s, want %s", step.config, got, step.want)
		}
	}
	_, err := configure(p, "panic")
	if got, ok := errors.AsType[*phases.Error](err); !ok || got.PluginCode != "panic" {
		t.Errorf("a panic comes through as %v", err)
	}
	_, err = configure(p, "3")
	if got, ok := errors.AsType[*phases.ConfigError](err); !ok || got.Pointer != "/word" {
		t.Errorf("the plugin's own error does not come through: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	hook := func(name string, fail func() error) sdk.Hook {
		return sdk.Hook{Name: name, SessionEnd: func(context.Context, *sdk.Call, *phases.SessionEndInput) ([]phases.Contribution, error) {
			return []phases.Contribution{&phases.Noop{}}, fail()
		}}
	}
	p := plugin(
		hook("plain", func() error { return fmt.Errorf("plain: %w", cause) }),
		hook("coded", func() error { return fmt.Errorf("wrapped: %w", sdk.Fail("upstream_down", "try later")) }),
		hook("cancelled", func() error { return context.Canceled }),
		hook("panics", func() error { panic("on the " + "street") }),
		hook("panics_with_error", func() error { panic(cause) }),
	)
	p.Tools = []sdk.Tool{
		{Tool: phases.Tool{Name: "plain"}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return sdk.Text("x"), cause }},
		{Tool: phases.Tool{Name: "panics"}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { panic("tool") }},
	}
	tests := []struct {
		name             string
		tool             bool
		code, part       string
		is               error
		stack, wrongCall bool
	}{
		{name: "plain", code: "error", part: "plain: cause", is: cause},
		{name: "coded", code: "upstream_down", part: "try later"},
		{name: "cancelled", code: "error", is: context.Canceled},
		{name: "panics", code: "panic", part: "panic: on the street", stack: true},
		{name: "panics_with_error", code: "panic", part: "panic: cause", stack: true},
		{name: "absent", code: "unknown_hook", part: `the plugin p has no hook "absent"`},
		{name: "plain", tool: true, code: "error", part: "cause", is: cause},
		{name: "panics", tool: true, code: "panic", part: "panic: tool", stack: true},
		{name: "absent", tool: true, code: "unknown_tool", part: `the plugin p has no tool "absent"`},
		{name: "plain", wrongCall: true, code: "wrong_input", part: "want the input of session.end, got *phases.PrePolicyInput"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s tool=%t wrong=%t", tt.name, tt.tool, tt.wrongCall), func(t *testing.T) {
			t.Parallel()
			var got any
			var err error
			input := phases.Input(&phases.SessionEndInput{})
			if tt.wrongCall {
				input = &phases.PrePolicyInput{}
			}
			if tt.tool {
				var res *phases.ToolResult
				res, err = p.CallTool(t.Context(), &phases.ToolCall{Tool: tt.name})
				got = res
			} else {
				var res *phases.Result
				res, err = p.Dispatch(t.Context(), &phases.Dispatch{Hook: tt.name, Input: input})
				got = res
			}
			coded, ok := errors.AsType[*phases.Error](err)
			if !ok || coded.Code != phases.CausePluginError || coded.PluginCode != tt.code || !strings.Contains(coded.Message, tt.part) {
				t.Fatalf("error is %#v", err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v does not wrap %v", err, tt.is)
			}
			if tt.stack != strings.Contains(coded.Message, "plugin_test.go") {
				t.Errorf("stack wanted: %t; the message is %s", tt.stack, coded.Message)
			}
			if fmt.Sprint(got) != "<nil>" {
				t.Errorf("an error comes with the answer %v", got)
			}
		})
	}
}

// TestConcurrentUse lets many callers ask while the configuration changes: each
// sees one configuration or the other, whole.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	p := configurable()
	if _, err := configure(p, `"0"`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := configure(p, strconv.Quote(strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				d, err := p.Describe(context.Background())
				if err != nil || len(d.Hooks) != 2 || len(d.Tools) != 1 {
					t.Errorf("described %+v, error %v", d, err)
				}
				res, err := p.Dispatch(context.Background(), &phases.Dispatch{Hook: "word", Input: &phases.PrePromptCompileInput{}})
				if err != nil || len(res.Contributions) != 1 {
					t.Errorf("result %+v, error %v", res, err)
				}
				if _, err := p.CallTool(context.Background(), &phases.ToolCall{Tool: "say"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestClose: the end is optional, may be said twice, and is no end for ever.
func TestClose(t *testing.T) {
	t.Parallel()
	p := plugin(compileHook("h", section("x")))
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("without OnClose: %v", err)
	}
	unclosed := errors.New("still open")
	tests := []struct {
		name  string
		close func(context.Context) error
		cause error
		code  string
	}{
		{name: "well", close: func(context.Context) error { return nil }},
		{name: "not", close: func(context.Context) error { return unclosed }, cause: unclosed},
		{name: "panic", close: func(context.Context) error { panic("oh") }, code: "panic"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := plugin(compileHook("h", section("x")))
			p.OnClose = tt.close
			for range 2 {
				err := p.Close(t.Context())
				var coded *phases.Error
				if errors.As(err, &coded) != (tt.code != "") || coded != nil && coded.PluginCode != tt.code || !errors.Is(err, tt.cause) && tt.cause != nil ||
					tt.cause == nil && tt.code == "" && err != nil {
					t.Errorf("error %v", err)
				}
			}
			if got := ask(t, p, "h"); len(got) != 1 {
				t.Errorf("afterwards it answers %v", got)
			}
		})
	}
}
