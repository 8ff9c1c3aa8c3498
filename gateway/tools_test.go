package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// watchful is a plugin that judges calls by the tool's name, rewrites arguments and results, reminds, and notes how
// turns end.
func watchful(ends chan<- phases.PostTurnInput) *sdk.Plugin {
	echo := phases.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}
	return &sdk.Plugin{
		Name: "p", Version: "1.0.0",
		Tools: []sdk.Tool{{Tool: echo, Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("echo " + string(c.Arguments)), nil
		}}},
		Hooks: []sdk.Hook{
			{Name: "start", Kinds: []phases.Kind{phases.KindReminder}, SessionStart: func(context.Context, *sdk.Call, *phases.SessionStartInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.Reminder{Type: "hello", Text: "<b>It begins.</b></system-reminder>"})
			}},
			{Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.ToolBundle{BundleID: "p", Tools: []phases.Tool{echo}})
			}},
			{Name: "rewrite", Kinds: []phases.Kind{phases.KindRewrite}, ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				if !strings.Contains(string(in.Arguments), "path") {
					return nil, nil
				}
				return sdk.Reply(&phases.Rewrite{Path: "/path", Value: json.RawMessage(`"/safe"`)})
			}},
			{Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				switch in.Tool {
				case "rm":
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "nothing is removed", ReasonCode: "house"})
				case "mail":
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAsk, Reason: "it leaves the house", ReasonCode: "out"})
				}
				return nil, nil
			}},
			{Name: "after", Kinds: []phases.Kind{phases.KindRewrite}, ToolPostCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				if !strings.Contains(in.Result.Text, "secret") {
					return nil, nil
				}
				return sdk.Reply(&phases.Rewrite{Value: sdk.Text(strings.ReplaceAll(in.Result.Text, "secret", "***")).Content})
			}},
			{Name: "end", PostTurn: func(_ context.Context, _ *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
				ends <- *in
				return nil, nil
			}},
		},
	}
}

// watched serves a gateway with the plugin, and begins a turn of a session.
func watched(t *testing.T, begin object) (c *caller, handle string, log *store.Store, ends chan phases.PostTurnInput) {
	t.Helper()
	model := treeOf(t, "w")
	log, ends = logStore(t), make(chan phases.PostTurnInput, 1)
	c = serve(t, Options{Tree: model, Engine: looptest.Host(t, log, watchful(ends)), Log: log}).post(t, "")
	params := object{"turn": turnOf(object{"session_id": "s"})}
	maps.Copy(params, begin)
	do[any](t, c, "session/start", object{"context": object{"workspace_id": "w", "session_id": "s"}})
	return c, do[begunTurn](t, c, "turn/begin", params).Handle, log, ends
}

// TestWholeTurn: a client in any language gets what package loop gives to Go: reminders of all phases are rendered and
// delivered once, calls are judged and rewritten, results rewritten and trimmed, and the end knows of all of it.
func TestWholeTurn(t *testing.T) {
	t.Parallel()

	c, handle, _, ends := watched(t, object{"max_result_chars": 20})
	round := func() compiledTurn {
		t.Helper()
		return do[compiledTurn](t, c, "turn/compile", object{"handle": handle, "input": object{"user_text": "Hi!", "tool_calling": true}})
	}
	first := round()
	want := []string{"<system-reminder type=\"hello\">\n<b>It begins.</b><\\/system-reminder>\n</system-reminder>"}
	if diff := cmp.Diff(first.ReminderTexts, want); diff != "" || len(first.Reminders) != 1 || len(first.Tools) != 1 {
		t.Errorf("%d reminders, %d tools (-got +want):\n%s", len(first.Reminders), len(first.Tools), diff)
	}
	do[any](t, c, "turn/report", object{"handle": handle, "usage": object{"input_tokens": 100, "output_tokens": 5}})

	checked := do[checkedCall](t, c, "tool/check", object{"handle": handle, "call_id": "1", "tool": "read", "arguments": object{"path": "/etc"}, "paths": []string{"/etc"}})
	if string(checked.Arguments) != `{"path":"/safe"}` || checked.Refused != nil || len(checked.Paths) != 1 {
		t.Errorf("checked %s %v %+v", checked.Arguments, checked.Paths, checked.Refused)
	}
	done := do[finishedCall](t, c, "tool/finish", object{"handle": handle, "call_id": "1", "tool": "read", "arguments": checked.Arguments, "text": "a secret", "duration_ms": 1.5})
	if done != (finishedCall{"a ***", false, true}) {
		t.Errorf("finished %+v", done)
	}
	called := do[calledTool](t, c, "tool/call", object{"handle": handle, "call_id": "2", "tool": "echo", "arguments": object{"path": "/a", "text": strings.Repeat("x", 100)}})
	if !strings.HasPrefix(called.Text, `echo {"path":"/safe"`[:17]) || !called.Changed || called.Refused != nil || called.Error != nil || called.IsError {
		t.Errorf("called %+v", called)
	}
	denied := do[calledTool](t, c, "tool/call", object{"handle": handle, "call_id": "3", "tool": "rm", "allowed": true})
	if r := denied.Refused; r == nil || r.Verdict != phases.VerdictDeny || r.By != "p.guard" || r.ReasonCode != "house" || !denied.IsError || denied.Text != `the call of the tool "rm" was refused by p.guard: nothing is removed` {
		t.Errorf("a denied call that somebody allows: %+v %+v", denied, denied.Refused)
	}

	second := round()
	var types []string
	for _, r := range second.Reminders {
		types = append(types, r.Type+" "+r.Attributes["tool"]+" "+r.Attributes["verdict"])
	}
	if diff := cmp.Diff(types, []string{"tool.output.trimmed echo ", "permission.decision rm deny"}); diff != "" || len(second.ReminderTexts) != 2 {
		t.Errorf("reminders (-got +want):\n%s", diff)
	}
	do[any](t, c, "turn/report", object{"handle": handle, "usage": object{"input_tokens": 200, "output_tokens": 7}})
	if third := round(); len(third.Reminders)+len(third.ReminderTexts) != 0 {
		t.Errorf("delivered twice: %q", third.ReminderTexts)
	}
	do[any](t, c, "turn/end", object{"handle": handle, "end": object{"status": "succeeded", "assistant_text": "Hello."}, "wait": true})
	end := <-ends
	events := make([]string, len(end.ToolEvents))
	for i, e := range end.ToolEvents {
		events[i] = e.CallID + " " + e.Tool + " " + e.Outcome
	}
	if diff := cmp.Diff(events, []string{"1 read ok", "2 echo ok", "3 rm denied"}); diff != "" || end.UserText.Text != "Hi!" || end.Usage != (phases.Usage{InputTokens: 300, OutputTokens: 12}) || end.ToolEvents[0].DurationMS != 1.5 {
		t.Errorf("the end: %+v\nevents (-got +want):\n%s", end, diff)
	}
}

// TestEndIsTheClients: what a client says of its turn's end is not replaced.
func TestEndIsTheClients(t *testing.T) {
	t.Parallel()

	c, handle, _, ends := watched(t, nil)
	do[any](t, c, "turn/compile", object{"handle": handle, "input": object{"user_text": "Hi!"}})
	do[any](t, c, "tool/check", object{"handle": handle, "call_id": "1", "tool": "rm"})
	do[any](t, c, "turn/end", object{"handle": handle, "end": object{
		"status": "failed", "user_text": object{"text": "Ho!"}, "usage": object{"input_tokens": 1}, "tool_events": []object{{"tool": "x"}},
	}, "wait": true})
	if end := <-ends; end.UserText.Text != "Ho!" || end.Usage.InputTokens != 1 || len(end.ToolEvents) != 1 || end.ToolEvents[0].Tool != "x" {
		t.Errorf("%+v", end)
	}
}

// TestAskThroughClient: an ask comes to the client, whose person decides. The answer is on record; without one the call
// is denied at the next prompt.
func TestAskThroughClient(t *testing.T) {
	t.Parallel()

	c, handle, log, ends := watched(t, nil)
	compile := func() (reminders []string) {
		t.Helper()
		done := do[compiledTurn](t, c, "turn/compile", object{"handle": handle, "input": object{"user_text": "Hi!"}})
		for _, r := range done.Reminders {
			if r.Type == "permission.decision" {
				reminders = append(reminders, r.Attributes["call_id"]+" "+r.Attributes["verdict"]+" "+r.Attributes["answer"])
			}
		}
		return reminders
	}
	check := func(id string, more object) *refusedCall {
		t.Helper()
		params := object{"handle": handle, "call_id": id, "tool": "mail", "arguments": object{"to": "ada"}}
		maps.Copy(params, more)
		return do[checkedCall](t, c, "tool/check", params).Refused
	}
	compile()
	for _, id := range []string{"yes", "no", "never"} {
		r := check(id, nil)
		if r == nil || r.Verdict != phases.VerdictAsk || r.Reason != "it leaves the house" || !strings.Contains(r.Text, "a person has to allow it") {
			t.Fatalf("%s: %+v", id, r)
		}
	}
	if r := check("yes", object{"allowed": true}); r != nil {
		t.Errorf("a call that was allowed: %+v", r)
	}
	if r := check("no", object{"allowed": false}); r == nil || r.Verdict != phases.VerdictAsk {
		t.Errorf("a call that a person refused: %+v", r)
	}
	if diff := cmp.Diff(compile(), []string{"yes ask yes", "no ask no", "never ask no"}); diff != "" {
		t.Errorf("decisions (-got +want):\n%s", diff)
	}
	if r := do[calledTool](t, c, "tool/call", object{"handle": handle, "call_id": "late", "tool": "mail"}).Refused; r == nil || r.Verdict != phases.VerdictAsk {
		t.Errorf("tool/call: %+v", r)
	}
	do[any](t, c, "turn/end", object{"handle": handle, "end": object{"status": "succeeded"}, "wait": true})
	var events []string
	for _, e := range (<-ends).ToolEvents {
		events = append(events, e.CallID+" "+e.Outcome)
	}
	if diff := cmp.Diff(events, []string{"no denied", "never denied", "late denied"}); diff != "" {
		t.Errorf("events (-got +want):\n%s", diff)
	}
	list := must(log.List(t.Context(), store.Filter{}))(t)
	kept := 0
	for _, i := range list {
		for _, r := range must(log.Get(t.Context(), i.ManifestID))(t).Reminders {
			if r.Type == "permission.decision" {
				kept++
			}
		}
	}
	if kept != 3 {
		t.Errorf("%d answers are on record", kept)
	}
}

// TestToolErrors: calls that make no sense are refused by name.
func TestToolErrors(t *testing.T) {
	t.Parallel()

	c, handle, _, _ := watched(t, nil)
	for _, tt := range []struct {
		method string
		params object
		in     string
	}{
		{"tool/finish", object{"text": "x", "duration_ms": -1}, "duration_ms"},
		{"tool/check", object{"tool": ""}, "tool: it is"},
		{"tool/finish", object{}, "text: it is missing"},
	} {
		params := object{"handle": handle, "tool": "x"}
		maps.Copy(params, tt.params)
		if _, bad := c.call(t, tt.method, params); bad.code() != rpc.CodeInvalid || !strings.Contains(bad.Message, tt.in) {
			t.Errorf("%s %v: %+v", tt.method, tt.params, bad)
		}
	}
	if _, bad := c.call(t, "turn/begin", object{"turn": turnOf(nil), "max_result_chars": -1}); bad.code() != rpc.CodeInvalid || !strings.Contains(bad.Message, "max_result_chars") {
		t.Errorf("%+v", bad)
	}
	if done := do[finishedCall](t, c, "tool/finish", object{"handle": handle, "tool": "x", "text": ""}); done != (finishedCall{}) {
		t.Errorf("an empty result: %+v", done)
	}
}
