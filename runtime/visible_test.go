package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestRequiredCannotCome: New refuses a configuration that requires a hook which no restart brings.
func TestRequiredCannotCome(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ name, yaml, want string }{
		{"a directory as the program", "plugins: [{name: greeter, command: ./, grants: {}}]\nbudgets: {phases: {turn.pre_policy: {require: [greeter.hello]}}}", "c.yaml:2:18: greeter.hello is required (budgets.phases), and the plugin greeter is quarantined: "},
		{"no such hook", "plugins: [{name: p, builtin: p, grants: {contribute: [policy], policies: ['*']}}]\nbudgets: {phases: {turn.pre_policy: {require: [p.hallo]}}}", "turn.pre_policy requires \"p.hallo\", which does not exist (did you mean \"p.hello\"?)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(path, []byte("version: 1\n"+tt.yaml+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			eng, err := runtime.New(t.Context(), cfg, runtime.Options{
				Logger: slog.New(slog.DiscardHandler), InProcess: map[string]runtime.Plugin{"p": plugin("p", on("hello", phases.PrePolicy, reply(), phases.KindPolicy))},
			})
			if eng != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestEventsAreLogged: an event is a value for a logger, with a level.
func TestEventsAreLogged(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	for _, tt := range []struct {
		event runtime.Event
		want  string
	}{
		{runtime.Event{Kind: runtime.EventPlugin, Plugin: "p", State: "quarantined", Code: "exec_failed", Message: "it is a directory"}, `level=ERROR msg=x e.kind=plugin e.plugin=p e.state=quarantined e.code=exec_failed e.message="it is a directory"`},
		{runtime.Event{Kind: runtime.EventPlugin, Plugin: "p", State: "backoff", Detail: "out of cheese"}, `level=WARN msg=x e.kind=plugin e.plugin=p e.state=backoff e.detail="out of cheese"`},
		{runtime.Event{Kind: runtime.EventFailOpen, Subscription: "p.h"}, `level=WARN msg=x e.kind=fail_open e.subscription=p.h`},
		{runtime.Event{Kind: runtime.EventManifest, State: "not_kept"}, `level=ERROR msg=x e.kind=manifest e.state=not_kept`},
		{runtime.Event{Kind: runtime.EventDiagnostic, State: "warning", Code: "turn_not_ended"}, `level=WARN msg=x e.kind=diagnostic e.state=warning e.code=turn_not_ended`},
		{runtime.Event{Kind: runtime.EventJob, State: "lost"}, `level=WARN msg=x e.kind=job e.state=lost`},
		{runtime.Event{Kind: runtime.EventLog, State: "ERROR", Count: 3}, `level=ERROR msg=x e.kind=log e.state=ERROR e.count=3`},
		{runtime.Event{Kind: runtime.EventDispatch, Phase: phases.PrePolicy, Took: time.Millisecond}, ``},
	} {
		out.Reset()
		log.Log(t.Context(), tt.event.Level(), "x", "e", tt.event)
		if got := strings.TrimSpace(out.String()); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// logsVar names the directory that a child of TestLogsByDefault has as a plugin's program.
const logsVar = "GRAPNEL_TEST_LOGS"

// TestLogsByDefault: without a logger a plugin whose program is a directory is one line on standard error.
func TestLogsByDefault(t *testing.T) {
	if dir := os.Getenv(logsVar); dir != "" {
		cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "greeter", Command: dir, Path: dir}}}
		eng, err := runtime.New(t.Context(), cfg, runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestLogsByDefault$")
	cmd.Env = append(os.Environ(), logsVar+"="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	said := stderr.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "plugin=greeter") || !strings.Contains(said, "is not a regular file") {
		t.Errorf("standard error: %s", said)
	}
}

// TestBeginRunOfHooks begins, tells and ends each row of the ledger once, whether or
// not its hook ran.
func TestBeginRunOfHooks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		hook  func(*sdk.Hook)
		state phases.RunState
	}{
		{"ran", func(*sdk.Hook) {}, phases.StateSucceeded},
		{"failed", func(h *sdk.Hook) { h.Any = failing(sdk.Fail("mood", "no")) }, phases.StateFailed},
		{"timed out", func(h *sdk.Hook) { h.Any, h.Timeout = taking(time.Minute), ms }, phases.StateTimedOut},
		{"filtered", func(h *sdk.Hook) { h.When = `turn.mode == "chat"` }, phases.StateFiltered},
		{"condition", func(h *sdk.Hook) { h.When = `int(turn.id + "x") == 0` }, phases.StateFailed},
		{"tried three times", func(h *sdk.Hook) {
			h.Any, h.Timeout, h.Idempotent, h.Retry = taking(time.Minute), ms, true, &phases.Retry{Attempts: 3}
		}, phases.StateTimedOut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var lines journal
			hook := on("h", phases.PrePolicy, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				lines.add("called with " + c.Trace.Parent)
				return nil, nil
			})
			tt.hook(&hook)
			h := newHosted(plugin("p", hook))
			h.opts.BeginRun = func(ctx context.Context, _ phases.Trace, run *phases.Run) (context.Context, phases.Trace, func(*phases.Run, time.Time)) {
				began := time.Now()
				lines.add("begin " + run.Subscription)
				return ctx, phases.Trace{Parent: "the span"}, func(run *phases.Run, at time.Time) {
					if at.Before(began) || at.After(time.Now()) {
						t.Error("it ended at a time that it was not over")
					}
					lines.add("end " + string(run.State))
				}
			}
			h.opts.OnEvent = func(ev runtime.Event) {
				if ev.Kind == runtime.EventRun {
					lines.add("told " + ev.State)
				}
			}
			dispatch(t, h.start(t), &phases.PrePolicyInput{})
			want := []string{"begin p.h", "told " + string(tt.state), "end " + string(tt.state)}
			if tt.name == "ran" {
				want = slices.Insert(want, 1, "called with the span")
			}
			checkSame(t, "runs", lines.all(), want)
		})
	}
}

// TestEventDispatch tells how long a phase took and how it ended.
func TestEventDispatch(t *testing.T) {
	t.Parallel()
	guard := on("guard", phases.ToolPreCall, failing(sdk.Fail("mood", "no")), phases.KindDecision)
	h := newHosted(plugin("p", guard, section("s", "s", "text")))
	var lines journal
	h.opts.OnEvent = func(ev runtime.Event) {
		if ev.Kind == runtime.EventDispatch {
			lines.add(fmt.Sprintf("%s %s %s %v", ev.Phase, ev.State, ev.Code, ev.Took > 0 && ev.Took < time.Minute))
		}
	}
	eng := h.start(t)
	dispatch(t, eng, &phases.PrePromptCompileInput{})
	dispatch(t, eng, &phases.ToolPreCallInput{Tool: "shell"})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	outcome(t)(eng.Dispatch(gone, host(), &phases.PrePromptCompileInput{}))
	want := []string{
		"turn.pre_prompt_compile succeeded  true", "tool.pre_call failed plugin_error true", "turn.pre_prompt_compile cancelled cancelled true",
	}
	checkSame(t, "dispatches", lines.all(), want)
}
