package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestSee: a plugin sees what it was granted, and the lengths of the rest.
func TestSee(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		see      []string
		text     phases.Text
		metadata bool
		withheld []string
		sets     int
	}{
		{name: "nothing", text: phases.Text{Withheld: true, Chars: 5}, withheld: []string{"metadata", "model", "user_text"}},
		{name: "one field", see: []string{"user_text"}, text: phases.T("hello"), withheld: []string{"metadata", "model"}},
		{name: "metadata", see: []string{"metadata", "model"}, text: phases.Text{Withheld: true, Chars: 5}, metadata: true, withheld: []string{"user_text"}},
		{name: "sets", see: []string{"policy", "context", "metadata", "model"}, text: phases.Text{Withheld: true, Chars: 5}, metadata: true, withheld: []string{"user_text"}, sets: 2},
		{name: "all", see: []string{"*"}, text: phases.T("hello"), metadata: true, sets: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			seen := make(chan *phases.Dispatch, 2)
			look := on("look", phases.PrePromptContext, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				seen <- c.Dispatch
				return nil, nil
			})
			set := on("set", phases.PrePolicy, reply(&phases.Policy{Common: phases.Common{Domain: "d"}, Key: "k", Value: raw("1")}), phases.KindPolicy)
			recall := on("recall", phases.PrePromptContext, reply(&phases.PromptContext{Content: "remember"}), phases.KindPromptContext)
			recall.When = `turn.mode == "agent"`
			h := newHosted(plugin("p", look), plugin("q", set, recall))
			h.plugin("p").Grants.See = tt.see
			where := host()
			where.Metadata = map[string]json.RawMessage{"m": raw("1")}
			turn := beginAt(t, h.start(t), where)
			outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
			for range 2 { // the second one has the contexts of the first
				outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptContextInput{UserText: phases.T("hello"), Model: "m"}))
			}
			<-seen
			d := <-seen
			in, _ := d.Input.(*phases.PrePromptContextInput)
			if in.UserText != tt.text || (len(d.Context.Metadata) > 0) != tt.metadata || len(d.Policies)+len(d.Contexts) != tt.sets {
				t.Errorf("saw %+v, metadata %v, %d policies and %d contexts", in.UserText, d.Context.Metadata, len(d.Policies), len(d.Contexts))
			}
			checkSame(t, "withheld", sorted(d.Withheld), tt.withheld)
		})
	}
}

// TestTransformChain: each transform hook sees what those before it rewrote, and
// the host goes on with the sum.
func TestTransformChain(t *testing.T) {
	t.Parallel()

	var j journal
	step := func(name string, priority int, rewrite *phases.Rewrite) sdk.Hook {
		h := on(name, phases.ToolPreCall, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
			call, _ := in.(*phases.ToolPreCallInput)
			j.add(string(call.Arguments))
			return sdk.Reply(rewrite)
		}, phases.KindRewrite)
		h.Role, h.Priority = phases.RoleTransform, priority
		return h
	}
	eng := newHosted(plugin("p",
		step("one", 30, &phases.Rewrite{Path: "/path", Value: raw(`"/safe"`)}),
		step("two", 20, &phases.Rewrite{Path: "/nothing/here", Value: raw("1")}),
		step("three", 10, &phases.Rewrite{Path: "/n", Value: raw("2")}),
	)).start(t)
	out := dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x", Arguments: raw(`{"path":"/etc"}`)})

	checkSame(t, "seen", j.all(), []string{`{"path":"/etc"}`, `{"path":"/safe"}`, `{"path":"/safe"}`})
	want := []string{"p.one succeeded", "p.two failed invalid_reply", "p.three succeeded"}
	checkSame(t, "ledger", states(out), want)
	got, _ := out.Rewritten.(*phases.ToolPreCallInput)
	if string(got.Arguments) != `{"n":2,"path":"/safe"}` {
		t.Errorf("arguments = %s", got.Arguments)
	}
}

// TestRewriteThatDoesNotFit: it is its hook's failure, under its hook's policy.
func TestRewriteThatDoesNotFit(t *testing.T) {
	t.Parallel()

	bad := &phases.Rewrite{Path: "/nothing/here", Value: raw("1")}
	tests := []struct {
		name     string
		policy   phases.FailureWord
		fallback []phases.Contribution
		want     string
		err      string
	}{
		{name: "best effort", policy: phases.BestEffort, want: `{"a":1,"ok":true}`},
		{name: "fail closed", policy: phases.FailClosed, want: `{"a":1,"ok":true}`, err: "invalid_reply p.bad"},
		{name: "fallback", policy: phases.UseInstead, fallback: []phases.Contribution{&phases.Rewrite{Path: "/b", Value: raw("2")}}, want: `{"a":1,"b":2,"ok":true}`},
		{name: "fallback that does not fit", policy: phases.UseInstead, fallback: []phases.Contribution{bad}, want: `{"a":1,"ok":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			hook := on("bad", phases.ToolPreCall, reply(bad), phases.KindRewrite)
			hook.OnFailure, hook.Fallback = word(tt.policy), tt.fallback
			good := on("good", phases.ToolPreCall, reply(&phases.Rewrite{Path: "/ok", Value: raw("true")}), phases.KindRewrite)
			out := dispatch(t, newHosted(plugin("p", hook, good)).start(t), &phases.ToolPreCallInput{Tool: "x", Arguments: raw(`{"a":1}`)})
			got, _ := out.Rewritten.(*phases.ToolPreCallInput)
			if string(got.Arguments) != tt.want {
				t.Errorf("arguments = %s, want %s", got.Arguments, tt.want)
			}
			if got := errorCode(out); got != tt.err {
				t.Errorf("error = %q, want %q", got, tt.err)
			}
			if got := states(out)[0]; got != "p.bad failed invalid_reply" {
				t.Errorf("ledger: %s", got)
			}
		})
	}
}

// TestRewriteOfResult: a result that is JSON is rewritten inside, any other text
// as a whole.
func TestRewriteOfResult(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, text, path, value, want string
		truncated                     bool
		length                        int
	}{
		{"inside JSON", `{"a":1}`, "/a", `2`, `{"a":2}`, false, 7},
		{"whole text", "plain words", "", `"other"`, "other", false, 5},
		{"preview keeps the length of the whole", "plain words", "", `"cut"`, "cut", true, 900},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := on("h", phases.ToolPostCall, reply(&phases.Rewrite{Path: tt.path, Value: raw(tt.value)}), phases.KindRewrite)
			h.Role = phases.RoleTransform
			in := &phases.ToolPostCallInput{Tool: "x", Result: phases.NewPreview(tt.text, 100)}
			if tt.truncated {
				in.Result.Truncated, in.Result.OriginalLength = true, tt.length
			}
			out := dispatch(t, newHosted(plugin("p", h)).start(t), in)
			got, _ := out.Rewritten.(*phases.ToolPostCallInput)
			checkSame(t, "result", got.Result, phases.Preview{Text: tt.want, OriginalLength: tt.length, Truncated: tt.truncated})
		})
	}
}

// TestValidatorsSeeTheResult: they judge with the merged policies and the
// rewritten input in hand.
func TestValidatorsSeeTheResult(t *testing.T) {
	t.Parallel()

	set := on("set", phases.PrePolicy, reply(&phases.Policy{Common: phases.Common{Domain: "d"}, Key: "k", Value: raw(`"v"`)}), phases.KindPolicy)
	check := on("check", phases.PrePolicy, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		if v, ok := c.Policy("d", "k"); ok && string(v) == `"v"` {
			return sdk.Reply(deny("that policy is not allowed"))
		}
		return sdk.Reply(allow())
	}, phases.KindDecision)
	check.Role = phases.RoleValidate
	out := dispatch(t, newHosted(plugin("p", set, check)).start(t), &phases.PrePolicyInput{})
	if out.Decision == nil || out.Decision.Verdict != phases.VerdictDeny {
		t.Errorf("decision = %+v", out.Decision)
	}
}

// TestReminders: one dedupe key is delivered once per session and epoch, by
// plugin; a failed phase delivers nothing.
func TestReminders(t *testing.T) {
	t.Parallel()

	remind := func(name string) sdk.Hook {
		return on(name, phases.ToolPostCall, reply(
			&phases.Reminder{Type: "t", Text: name, DedupeKey: "once"}, &phases.Reminder{Type: "t", Text: "always"},
		), phases.KindReminder)
	}
	guard := on("guard", phases.ToolPostCall, failing(sdk.Fail("x", "x")))
	guard.OnFailure, guard.When = word(phases.FailClosed), "flags.fail"
	eng := newHosted(plugin("p", remind("a"), guard), plugin("q", remind("b"))).start(t)

	session := func(id string, epoch int, fail bool) phases.Context {
		c := host()
		c.SessionID, c.Epoch, c.Flags = id, epoch, map[string]bool{"fail": fail}
		return c
	}
	steps := []struct {
		name string
		at   phases.Context
		want string
	}{
		{"a failed phase does not count", session("s", 0, true), "a always b always"},
		{"first", session("s", 0, false), "a always b always"},
		{"again", session("s", 0, false), "always always"},
		{"another session", session("s2", 0, false), "a always b always"},
		{"a new epoch", session("s", 1, false), "a always b always"},
		{"the same epoch", session("s", 1, false), "always always"},
		{"no session", session("", 0, false), "a always b always"},
		{"still no session", session("", 0, false), "a always b always"},
	}
	for _, step := range steps {
		out := outcome(t)(eng.Dispatch(t.Context(), step.at, &phases.ToolPostCallInput{Tool: "x"}))
		var got []string
		for _, r := range out.Merged.Reminders {
			got = append(got, r.Text)
		}
		if text := strings.Join(got, " "); text != step.want {
			t.Errorf("%s: %q, want %q", step.name, text, step.want)
		}
	}
}

// TestDiagnosticsOfPlugins: they are passed on under the plugin's name, whatever
// name they bear.
func TestDiagnosticsOfPlugins(t *testing.T) {
	t.Parallel()

	p := plugin("p", on("h", phases.PrePromptCompile, reply()))
	h := newHosted(p)
	h.opts.InProcess["p"] = rude{p, func() (*phases.Result, error) {
		return &phases.Result{
			Contributions: []phases.Contribution{&phases.ManifestDiagnostic{Code: "stale", Message: "old data"}},
			Diagnostics:   []phases.Diagnostic{{Code: "slow", Plugin: "somebody", Subscription: "else.where"}},
		}, nil
	}}
	out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
	checkSame(t, "diagnostics", codes(out), []string{"slow p.h", "stale p.h"})
}
