package gateway

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// fakeEngine notes what it is asked for.
type fakeEngine struct {
	Engine // nil: the rest is not called

	turn     phases.Context
	compiled runtime.CompileInput
	input    phases.Input
	idle     error
	waited   int
	plugins  []phases.PluginRow
	overview runtime.Overview
	queueErr string

	done *runtime.Compiled
	out  *phases.Outcome
	err  error
}

func (e *fakeEngine) CompileTurn(_ context.Context, turn phases.Context, in runtime.CompileInput) (*runtime.Compiled, error) {
	e.turn, e.compiled = turn, in
	return e.done, e.err
}

func (e *fakeEngine) Dispatch(_ context.Context, c phases.Context, in phases.Input) (*phases.Outcome, error) {
	e.turn, e.input = c, in
	return e.out, e.err
}

func (e *fakeEngine) BeginTurn(_ context.Context, turn phases.Context) (*runtime.Turn, error) {
	e.turn = turn
	return nil, e.err
}

func (e *fakeEngine) StartSession(_ context.Context, s phases.Context, _ string) (*runtime.Session, error) {
	e.turn = s
	return nil, e.err
}

func (e *fakeEngine) ResumeSession(_ context.Context, s phases.Context, _ *phases.SessionResumeInput) (*runtime.Session, error) {
	e.turn = s
	return nil, e.err
}

func (e *fakeEngine) EndSession(_ context.Context, s phases.Context, _ string) (*phases.Outcome, error) {
	e.turn = s
	return e.out, e.err
}

func (e *fakeEngine) Collect(ctx context.Context) (context.Context, func(context.Context) ([]phases.BackgroundRun, error)) {
	return ctx, func(ctx context.Context) ([]phases.BackgroundRun, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err() // nobody waits
		}
		e.waited++
		return []phases.BackgroundRun{}, e.idle
	}
}

func (e *fakeEngine) Plugins() []phases.PluginRow { return e.plugins }

func (e *fakeEngine) Stats() runtime.Stats { return runtime.Stats{ManifestsKept: 7} }

// Queue is one in a store, or not to be reached once there is an error.
func (e *fakeEngine) Queue(context.Context) runtime.QueueStatus {
	if e.queueErr != "" {
		return runtime.QueueStatus{Durable: true, Error: e.queueErr}
	}
	return runtime.QueueStatus{Durable: true, Counts: jobs.Counts{Waiting: 3, Scheduled: 2, Running: 4, Dead: 1, OldestSeconds: 1.5}}
}

func (e *fakeEngine) Overview() runtime.Overview {
	o := e.overview
	for _, row := range e.plugins {
		o.Plugins = append(o.Plugins, runtime.PluginHealth{PluginRow: row})
	}
	return o
}

// turnOf are params of turn/compile.
func turnOf(more object) object {
	turn := object{"workspace_id": "w", "thread_id": "t", "turn_id": "1"}
	maps.Copy(turn, more)
	return turn
}

// TestCompileFills checks what the engine is given: everything that the client
// says, what the command line fills in too, and no folder of the gateway's own.
func TestCompileFills(t *testing.T) {
	t.Parallel()

	eng := &fakeEngine{done: &runtime.Compiled{}}
	c := serve(t, Options{Tree: treeOf(t, "w"), Engine: eng, Facts: compiler.Facts{OS: "plan9"}}).post(t, "")
	do[any](t, c, "turn/compile", object{
		"turn":  turnOf(object{"now": "2026-02-03T04:05:06+02:00", "flags": object{"f": true}}),
		"input": object{"user_text": "u", "existing_tools": []string{"e"}, "texts": object{"safety": "s"}},
	})
	want := phases.Context{
		WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent, Profile: phases.ProfileFull,
		Actor: phases.Actor{Kind: "user"}, Flags: map[string]bool{"f": true}, Now: eng.turn.Now,
	}
	if diff := cmp.Diff(eng.turn, want); diff != "" {
		t.Errorf("turn (-got +want):\n%s", diff)
	}
	if got := eng.turn.Now.Format("15:04:05Z07:00"); got != "04:05:06+02:00" {
		t.Errorf("now: %s", got)
	}
	in := runtime.CompileInput{
		UserText: "u", ExistingTools: []string{"e"}, Host: compiler.HostTexts{Safety: "s"}, Facts: compiler.Facts{OS: "plan9", TimeZone: "UTC+02:00"},
	}
	if diff := cmp.Diff(eng.compiled, in); diff != "" {
		t.Errorf("input (-got +want):\n%s", diff)
	}
	eng.out = &phases.Outcome{}
	do[any](t, c, "phase/dispatch", object{"phase": "tool.pre_call", "context": object{"mode": "task"}, "input": object{"tool": "shell"}})
	if in, ok := eng.input.(*phases.ToolPreCallInput); !ok || in.Tool != "shell" || eng.turn.Mode != phases.ModeTask || eng.turn.Dir != "" {
		t.Errorf("dispatched %+v with %+v", eng.input, eng.turn)
	}
}

// TestTurnErrors checks requests that make no sense, and engines that cannot.
func TestTurnErrors(t *testing.T) {
	t.Parallel()

	with := func(e Engine) *caller { return serve(t, Options{Tree: treeOf(t, "w"), Engine: e}).post(t, "") }
	c, none := with(&fakeEngine{err: runtime.ErrClosed}), with(nil)
	coded, secret := with(&fakeEngine{err: phases.Errorf(phases.CauseForbidden, "no")}), with(&fakeEngine{err: errors.New("a secret")})
	needed := with(&fakeEngine{err: &phases.Error{Code: phases.CauseTurnNeeded, Subscription: "p.guard", Message: "it has none"}})
	session := object{"workspace_id": "w", "session_id": "s"}
	for _, tt := range []struct {
		name   string
		c      *caller
		method string
		params object
		code   string
		in     string // of the message
	}{
		{"no turn", c, "turn/compile", object{}, rpc.CodeInvalid, "turn: it is missing"},
		{"no turn's id", c, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "t"}}, rpc.CodeInvalid, "turn.turn_id"},
		{"profile", c, "turn/compile", object{"turn": turnOf(object{"profile": "huge"})}, rpc.CodeInvalid, "huge"},
		{"closed", c, "turn/compile", object{"turn": turnOf(nil)}, rpc.CodeUnavailable, "closed"},
		{"no engine", none, "turn/compile", object{"turn": turnOf(nil)}, rpc.CodeUnavailable, "no engine"},
		{"a turn and a handle", c, "turn/compile", object{"turn": turnOf(nil), "handle": "h"}, rpc.CodeInvalid, "both"},
		{"no turn, beginning", c, "turn/begin", object{}, rpc.CodeInvalid, "turn: it is missing"},
		{"no handle", c, "turn/dispatch", object{"phase": "turn.pre_policy"}, rpc.CodeInvalid, "handle: it is missing"},
		{"unknown handle, compiling", c, "turn/compile", object{"handle": "h"}, rpc.CodeTurnUnknown, `no turn "h" here`},
		{"unknown handle, dispatching", c, "turn/dispatch", object{"handle": "h", "phase": "turn.pre_policy"}, rpc.CodeTurnUnknown, "turn/begin"},
		{"unknown handle, calling", c, "tool/call", object{"handle": "h", "tool": "x"}, rpc.CodeTurnUnknown, "turn/begin"},
		{"unknown handle, ending", c, "turn/end", object{"handle": "h", "end": object{}}, rpc.CodeTurnUnknown, "turn/begin"},
		{"the end as a phase", c, "turn/dispatch", object{"handle": "h", "phase": "turn.post_turn"}, rpc.CodeInvalid, "turn/end"},
		{"a session as a phase", c, "turn/dispatch", object{"handle": "h", "phase": "session.start"}, rpc.CodeInvalid, "session/start"},
		{"no end", c, "turn/end", object{"handle": "h"}, rpc.CodeInvalid, "end: it is missing"},
		{"unknown handle, reporting", c, "turn/report", object{"handle": "h"}, rpc.CodeTurnUnknown, "turn/begin"},
		{"no tool", c, "tool/call", object{"handle": "h"}, rpc.CodeInvalid, "tool: it is missing"},
		{"no session's id", c, "session/start", object{"context": object{"workspace_id": "w"}}, rpc.CodeInvalid, "context.session_id"},
		{"a source that is none", c, "session/start", object{"context": session, "source": "boot"}, rpc.CodeInvalid, "boot"},
		{"closed, starting a session", c, "session/start", object{"context": session}, rpc.CodeUnavailable, "closed"},
		{"a turn is needed", needed, "phase/dispatch", object{"phase": "tool.pre_call"}, rpc.CodeTurnNeeded, "p.guard: it has none (turn_needed): call turn/begin"},
		{"unknown phase", c, "phase/dispatch", object{"phase": "tool.pre_cal"}, rpc.CodeInvalid, "tool.pre_call"},
		{"an input that is none", c, "phase/dispatch", object{"phase": "tool.pre_call", "input": []int{1}}, rpc.CodeInvalid, ""},
		{"closed, dispatching", c, "phase/dispatch", object{"phase": "tool.pre_call"}, rpc.CodeUnavailable, "closed"},
		{"no engine, dispatching", none, "phase/dispatch", object{"phase": "tool.pre_call"}, rpc.CodeUnavailable, "no engine"},
		{"coded", coded, "phase/dispatch", object{"phase": "tool.pre_call"}, rpc.CodeInvalid, "no"},
		{"not coded", secret, "phase/dispatch", object{"phase": "tool.pre_call"}, rpc.CodeInternal, "internal"},
		{"no log", none, "manifest/list", object{}, rpc.CodeUnavailable, "no manifests"},
	} {
		_, bad := tt.c.call(t, tt.method, tt.params)
		if bad.code() != tt.code || !strings.Contains(bad.Message, tt.in) || strings.Contains(bad.Message, "secret") {
			t.Errorf("%s: %+v, want %s with %q", tt.name, bad, tt.code, tt.in)
		}
	}
}

// TestFailsClosed: a phase that fails closed is a result with an error in it, and
// with what is known all the same.
func TestFailsClosed(t *testing.T) {
	t.Parallel()

	model := treeOf(t, "w")
	must(model.Save(t.Context(), tree.Save{Scope: tree.Scope{WorkspaceID: "w"}, Content: "fail"}))(t)
	c := serve(t, Options{Tree: model, Engine: engine(t, model, nil)}).post(t, "")
	got := do[runtime.Compiled](t, c, "turn/compile", object{"turn": turnOf(nil)})
	if got.Error == nil || got.Error.Subscription != "house.rules" || got.Prompt != nil || got.Manifest == nil || len(got.Manifest.Runs) == 0 {
		t.Errorf("compiled %+v", got)
	}
	out := do[struct {
		Error *phases.Error
		Runs  []phases.Run
	}](t, c, "phase/dispatch", object{"phase": "turn.pre_prompt_compile", "context": object{"workspace_id": "w", "thread_id": "t"}})
	if out.Error == nil || len(out.Runs) != 1 || out.Runs[0].State != phases.StateFailed {
		t.Errorf("dispatched %+v", out)
	}
}

// TestNew checks what is refused before anything is served.
func TestNew(t *testing.T) {
	t.Parallel()

	model := storetest.Tree(t, nil)
	for name, o := range map[string]Options{
		"no tree":         {},
		"a relative root": {Tree: model, Roots: []string{"."}},
		"no such root":    {Tree: model, Roots: []string{filepath.Join(t.TempDir(), "none")}},
		"a bad token":     {Tree: model, Tokens: []Token{{Name: "x"}}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
