package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// TestMain lets this test binary be the plugin's process too: a host starts it
// with a cookie in the environment, and no build step is needed.
func TestMain(m *testing.M) {
	if serve.StartedByHost() {
		main()
	}
	os.Exit(m.Run())
}

// declared is the operator's file beside this test, with the test binary as the
// command.
func declared(t *testing.T) *config.Config {
	t.Helper()
	cfg, err := config.Load("grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Plugins[0].Path, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// start starts an engine. The plugin runs inside it, or as a process.
func start(t *testing.T, cfg *config.Config, inProcess bool) *runtime.Engine {
	t.Helper()
	var opts runtime.Options
	if inProcess {
		opts.InProcess = map[string]runtime.Plugin{"freeze": newPlugin()}
		cfg.Plugins[0].Command = ""
	}
	eng, err := runtime.New(t.Context(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// at is a turn at a time.
func at(year int) phases.Turn {
	return phases.Turn{ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent, Now: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func TestFreeze(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name      string
		inProcess bool
		year      int
		tool      string
		section   bool
		verdict   phases.Verdict
		status    string
	}{
		{"in process, frozen", true, 2098, "deploy", true, phases.VerdictDeny, "No changes until"},
		{"in process, another tool", true, 2098, "read", true, "", "No changes until"},
		{"in process, over", true, 2100, "deploy", false, "", "No freeze is on."},
		{"a process, frozen", false, 2098, "deploy", true, phases.VerdictDeny, "No changes until"},
		{"a process, over", false, 2100, "deploy", false, "", "No freeze is on."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			turn, err := start(t, declared(t), tt.inProcess).BeginTurn(t.Context(), at(tt.year))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := turn.PreTools(t.Context(), &phases.PreToolsInput{ToolCalling: true}); err != nil {
				t.Fatal(err)
			}
			done, err := turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(done.Prompt.FullText, "## Change freeze"); got != tt.section {
				t.Errorf("section in the prompt: %v, want %v", got, tt.section)
			}
			out, err := turn.ToolPreCall(t.Context(), &phases.ToolPreCallInput{Tool: tt.tool})
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(out); got != tt.verdict {
				t.Errorf("verdict %q, want %q", got, tt.verdict)
			}
			res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "freeze_status"})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(res.Content); !strings.HasPrefix(got, `"`+tt.status) {
				t.Errorf("tool says %s, want %q", got, tt.status)
			}
		})
	}
}

func verdict(out *phases.Outcome) phases.Verdict {
	if out.Decision == nil {
		return ""
	}
	return out.Decision.Verdict
}

// TestConfiguration shows what the operator is told about a mistake.
func TestConfiguration(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, config, want string }{
		{"schema", `{"until": "2099-12-24T12:00:00Z"}`, "tools"},
		{"the plugin's own check", `{"until": "tomorrow", "tools": []}`, "tomorrow is no time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			cfg := declared(t)
			cfg.Plugins[0].Command, cfg.Plugins[0].Config = "", json.RawMessage(tt.config)
			_, err := runtime.New(t.Context(), cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"freeze": newPlugin()}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if err := newPlugin().Validate(); err != nil {
		t.Errorf("the literal: %v", err)
	}
	if _, err := parse([]byte(`{"until": "tomorrow"}`)); !errors.As(err, new(*phases.ConfigError)) {
		t.Errorf("error %v, want a ConfigError", err)
	}
}
