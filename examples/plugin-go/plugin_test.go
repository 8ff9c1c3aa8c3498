package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
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

const until2099 = `{"until": "2099-12-24T12:00:00Z", "tools": ["deploy"], "reason": "the year is ending"}`

const text = "No changes until 24 December 2099 12:00 UTC: the year is ending."

// in is a context in a year.
func in(year int) phases.Context {
	return phases.Context{ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent, Now: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// TestCalls makes single calls. The kit makes each several times, in process and
// over the wire, and checks what a host would find fault with.
func TestCalls(t *testing.T) {
	t.Parallel()

	deploy, read := &phases.ToolPreCallInput{Tool: "deploy"}, &phases.ToolPreCallInput{Tool: "read"}
	tests := []struct {
		name string
		call plugintest.Case
		want string // JSON of plugintest.Answer
	}{
		{
			"announced",
			plugintest.Case{Hook: "announce", Context: in(2098)},
			`{"contributions":[{"kind":"prompt_section","section_id":"freeze","title":"Change freeze","content":"` + text + `"}]}`,
		},
		{"over", plugintest.Case{Hook: "announce", Context: in(2100)}, `{}`},
		{
			"denied",
			plugintest.Case{Hook: "guard", Context: in(2098), Input: deploy},
			`{"contributions":[{"kind":"decision","verdict":"deny","reason":"` + text + `","reason_code":"freeze"}]}`,
		},
		{"another tool", plugintest.Case{Hook: "guard", Context: in(2098), Input: read}, `{}`},
		{"allowed again", plugintest.Case{Hook: "guard", Context: in(2100), Input: deploy}, `{}`},
		{"tool", plugintest.Case{Tool: "freeze_status", Context: in(2098)}, `{"content":"` + text + `"}`},
		{"tool, over", plugintest.Case{Tool: "freeze_status", Context: in(2100)}, `{"content":"No freeze is on."}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tt.call.Config = until2099
			got, err := json.Marshal(plugintest.Run(t, newPlugin(), tt.call))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("answer\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// start starts an engine with grapnel.yaml and this test binary as the command.
func start(t *testing.T, own string) (*runtime.Engine, error) {
	t.Helper()
	cfg, err := config.Load("grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Plugins[0].Config = json.RawMessage(own)
	if cfg.Plugins[0].Path, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	eng, err := runtime.New(t.Context(), cfg, runtime.Options{})
	if err == nil {
		t.Cleanup(func() {
			if err := eng.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	return eng, err
}

// TestProcess runs a turn with the plugin as a process, under the grants of
// grapnel.yaml: what is not granted there would be missing here.
func TestProcess(t *testing.T) {
	t.Parallel()

	eng, err := start(t, until2099)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := eng.BeginTurn(t.Context(), in(2098))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Dispatch(t.Context(), &phases.PreToolsInput{ToolCalling: true}); err != nil {
		t.Fatal(err)
	}
	done, err := turn.Compile(t.Context(), runtime.CompileInput{ToolCalling: true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(done.Prompt.FullText, "## Change freeze\n\n"+text) {
		t.Errorf("the section is not in the prompt:\n%s", done.Prompt.FullText)
	}
	out, err := turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "deploy"})
	if err != nil {
		t.Fatal(err)
	}
	if out.Decision == nil || out.Decision.Verdict != phases.VerdictDeny {
		t.Errorf("decision %+v, want a deny", out.Decision)
	}
	if res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "freeze_status"}); err != nil || string(res.Content) != `"`+text+`"` {
		t.Errorf("tool: %+v, %v", res, err)
	}
}

// TestRefusedConfiguration shows what the operator is told about a mistake.
func TestRefusedConfiguration(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, config, want string }{
		{"by the schema", `{"until": "2099-12-24T12:00:00Z"}`, "tools"},
		{"by the plugin", `{"until": "tomorrow", "tools": []}`, "tomorrow is not a time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if _, err := start(t, tt.config); err == nil || !strings.HasPrefix(err.Error(), "grapnel.yaml:") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with a place and %q", err, tt.want)
			}
		})
	}
}
