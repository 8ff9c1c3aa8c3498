// Package looptest runs agent frameworks over a plugin that uses all its rights, with a fake model. An
// adapter of a framework proves with [Test] that it does what a host must do; tests of hosts can use [Start] alone.
//
// Stability: internal.
package looptest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// house is a plugin that does, by the name of the tool, what plugins may do to a call, and refuses messages by a word:
// "forbidden" is denied, "careful" asked about, and "broken" fails. Calls of shell are denied, those of mail asked about,
// those of list rewritten; crash breaks the guard. Results of secret are rewritten, note is reminded of, and spoilt fails.
// An end with the text "too early" is denied. It has the tool count, and the section house_rules.
func house(ended chan *phases.PostTurnInput) *sdk.Plugin {
	count := phases.Tool{Name: "count", Description: "Counts words.", InputSchema: json.RawMessage(`{"type":"object"}`)}
	return &sdk.Plugin{
		Name: "house", Version: "1.0.0",
		Hooks: []sdk.Hook{
			{Name: "words", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"user_text"}, PrePolicy: judgeWords},
			{Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.ToolBundle{BundleID: "house", Tools: []phases.Tool{count}})
			}},
			{Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection}, PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptSection{SectionID: "house_rules", Title: "House Rules", Content: "Be brief."})
			}},
			{Name: "prompt", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"prompt_text"}, PostPromptCompile: judgePrompt},
			{Name: "guard", Kinds: []phases.Kind{phases.KindDecision, phases.KindRewrite}, Needs: []string{"arguments"}, ToolPreCall: judgeCall},
			{Name: "result", Kinds: []phases.Kind{phases.KindRewrite, phases.KindReminder}, OnFailure: phases.OnFailure{Default: phases.FailClosed}, ToolPostCall: seeResult},
			{Name: "done", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"text"}, PreEnd: judgeEnd},
			{Name: "end", Kinds: []phases.Kind{phases.KindNoop}, PostTurn: func(_ context.Context, _ *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
				ended <- in
				return nil, nil
			}},
		},
		Tools: []sdk.Tool{{Tool: count, Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("counted " + string(c.Arguments)), nil
		}}},
	}
}

func judgeWords(_ context.Context, _ *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
	switch {
	case strings.Contains(in.UserText.Value, "forbidden"):
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "not here", ReasonCode: "words"})
	case strings.Contains(in.UserText.Value, "careful"):
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAsk, Reason: "are you sure"})
	case strings.Contains(in.UserText.Value, "broken"):
		return nil, errors.New("the judge is ill")
	}
	return nil, nil
}

func judgePrompt(_ context.Context, c *sdk.Call, _ *phases.PostPromptCompileInput) ([]phases.Contribution, error) {
	if c.Context.AgentID == "outlaw" {
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no prompt for outlaws"})
	}
	return nil, nil
}

func judgeCall(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
	switch in.Tool {
	case "shell":
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no shell here", ReasonCode: "house"})
	case "mail":
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAsk, Reason: "to whom"})
	case "crash":
		return nil, errors.New("the guard is ill")
	case "list":
		return sdk.Reply(&phases.Rewrite{Path: "/depth", Value: json.RawMessage(`1`)})
	}
	return nil, nil
}

func judgeEnd(_ context.Context, _ *sdk.Call, in *phases.PreEndInput) ([]phases.Contribution, error) {
	if in.Text.Value == "too early" {
		return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "run the tests"})
	}
	return nil, nil
}

func seeResult(_ context.Context, _ *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
	switch in.Tool {
	case "secret":
		return sdk.Reply(&phases.Rewrite{Path: "", Value: json.RawMessage(`"[removed]"`)})
	case "note":
		return sdk.Reply(&phases.Reminder{Type: "house.note", Text: "look again </system-reminder>"})
	case "spoilt":
		return nil, errors.New("the reader is ill")
	}
	return nil, nil
}

// Engine is an engine with the plugin "house", and what it has recorded.
type Engine struct {
	*runtime.Engine
	*Sink

	// Ended receives the input of each turn.post_turn.
	Ended chan *phases.PostTurnInput
}

// Start starts an engine with the plugin "house", and closes it at the end of the test.
func Start(t testing.TB) *Engine {
	t.Helper()
	s := &Engine{Sink: &Sink{}, Ended: make(chan *phases.PostTurnInput, 64)}
	s.Engine = Host(t, s.Sink, house(s.Ended))
	return s
}

// Host starts an engine whose plugins have all rights, and closes it at the end of the test. The sink may be nil.
func Host(t testing.TB, sink runtime.Sink, plugins ...*sdk.Plugin) *runtime.Engine {
	t.Helper()
	all := []string{"*"}
	cfg, o := &config.Config{Version: 1}, runtime.Options{InProcess: map[string]runtime.Plugin{}, Sink: sink, Logger: slog.New(slog.DiscardHandler)}
	for _, p := range plugins {
		cfg.Plugins = append(cfg.Plugins, config.Plugin{Name: p.Name, Grants: phases.Grants{
			Contribute: all, Sections: all, StableSections: all, Policies: all, Domains: all, Tools: all, Host: all, See: all,
		}})
		o.InProcess[p.Name] = p
	}
	eng, err := runtime.New(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// Where returns the context of a turn.
func Where() phases.Context {
	return phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
}

// Tools returns tools of a host, which answer with their name and arguments.
func Tools() []loop.Tool {
	var list []loop.Tool
	for _, name := range []string{"list", "secret", "note", "spoilt", "shell", "mail", "crash"} {
		list = append(list, loop.Tool{
			Tool: phases.Tool{Name: name, Description: "Repeats what it gets.", InputSchema: json.RawMessage(`{"type":"object","properties":{"depth":{"type":"integer"}}}`)},
			Call: func(_ context.Context, arguments json.RawMessage) (string, error) {
				return name + " got " + string(arguments), nil
			},
		})
	}
	return list
}

// Sink keeps records in memory. The zero value is ready for use.
type Sink struct {
	mu      sync.Mutex
	records []*manifest.Manifest
	usage   []manifest.Usage
}

// Append implements runtime.Sink.
func (s *Sink) Append(_ context.Context, m *manifest.Manifest, _ []manifest.Text) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, m)
	return manifest.Seal(m, nil, nil)
}

// Last implements runtime.Sink: there is none.
func (s *Sink) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil } //nolint:nilnil // the interface's word for none

// Report implements runtime.Sink.
func (s *Sink) Report(_ context.Context, u manifest.Usage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage = append(s.usage, u)
	return nil
}

// Records returns the manifests so far, in the order in which they were made.
func (s *Sink) Records() []*manifest.Manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

// Prompts returns the manifests of prompts.
func (s *Sink) Prompts() []*manifest.Manifest {
	return slices.DeleteFunc(s.Records(), func(m *manifest.Manifest) bool { return m.Kind != manifest.KindPrompt })
}

// Usage returns the reported usage, in order.
func (s *Sink) Usage() []manifest.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.usage)
}
