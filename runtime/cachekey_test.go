package runtime_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestCachedByInput: inputs that differ in anything at all have answers of their
// own, also where two numbers are one in floating point.
func TestCachedByInput(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, vary string
		a, b       phases.Input
	}{
		{
			"large numbers", "input.arguments",
			&phases.ToolPostCallInput{Arguments: raw(`{"id":12345678901234567}`)}, &phases.ToolPostCallInput{Arguments: raw(`{"id":12345678901234568}`)},
		},
		{
			"preview", "input.result",
			&phases.ToolPostCallInput{Result: phases.Preview{Text: "a", OriginalLength: 1}}, &phases.ToolPostCallInput{Result: phases.Preview{Text: "a", OriginalLength: 9, Truncated: true}},
		},
		{"word", "input.tool", &phases.ToolPostCallInput{Tool: "a"}, &phases.ToolPostCallInput{Tool: "b"}},
		{"list", "input.touched_paths", &phases.ToolPostCallInput{TouchedPaths: []string{"a", "b"}}, &phases.ToolPostCallInput{TouchedPaths: []string{"a,b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			hook := on("h", phases.ToolPostCall, reply())
			hook.Cache = &phases.Cache{Vary: []string{test.vary}}
			eng := newHosted(plugin("p", hook)).start(t)
			for _, step := range []struct {
				in   phases.Input
				want phases.RunState
			}{{test.a, phases.StateSucceeded}, {test.b, phases.StateSucceeded}, {test.a, phases.StateCached}, {test.b, phases.StateCached}} {
				if got := runOf(t, dispatch(t, eng, step.in), "p.h").State; got != step.want {
					t.Errorf("%s, want %s", got, step.want)
				}
			}
		})
	}
}

// contextValues are a zero and another value of each field of a context that an
// answer may vary with, by its name in JSON.
func contextValues(t *testing.T) map[string]phases.Context {
	t.Helper()
	values := map[string]any{
		"actor": phases.Actor{Kind: "user", ID: "u"}, "dir": "/a", "dir_root": "/a", "epoch": 3, "flags": map[string]bool{"beta": true},
		"metadata": map[string]json.RawMessage{"m": raw("1")},
	}
	out := map[string]phases.Context{}
	form := reflect.TypeFor[phases.Context]()
	for i := range form.NumField() {
		name, _, _ := strings.Cut(form.Field(i).Tag.Get("json"), ",")
		if name == "now" {
			continue // no two turns have the same
		}
		var c phases.Context
		value := reflect.ValueOf("other")
		if other, ok := values[name]; ok {
			value = reflect.ValueOf(other)
		}
		field := reflect.ValueOf(&c).Elem().Field(i)
		field.Set(value.Convert(field.Type()))
		out[name] = c
	}
	return out
}

// TestCachedByContext: each field of the context makes a difference where it is
// named, and only there.
func TestCachedByContext(t *testing.T) {
	t.Parallel()
	always := []string{"workspace_id", "actor"}
	for name, other := range contextValues(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			named, silent := on("named", phases.PrePromptCompile, reply()), on("silent", phases.PrePromptCompile, reply())
			named.Cache, silent.Cache = &phases.Cache{Vary: []string{name}}, &phases.Cache{}
			eng := newHosted(plugin("p", named, silent)).start(t)
			for i, where := range []phases.Context{{}, other, {}, other} {
				out := outcome(t)(eng.Dispatch(t.Context(), where, &phases.PrePromptCompileInput{}))
				want := []string{"p.named succeeded", "p.silent succeeded"}
				switch {
				case i > 1:
					want = []string{"p.named cached", "p.silent cached"}
				case i == 1 && name != always[0] && name != always[1]:
					want = []string{"p.named succeeded", "p.silent cached"}
				}
				if diff := cmp.Diff(states(out), want); diff != "" {
					t.Errorf("dispatch %d (-got +want):\n%s", i, diff)
				}
			}
		})
	}
}

// TestCachedByConversation: without a conversation of its own a thread is one.
func TestCachedByConversation(t *testing.T) {
	t.Parallel()
	hook := on("h", phases.PrePromptCompile, reply())
	hook.Cache = &phases.Cache{Vary: []string{"conversation_thread_id"}}
	eng := newHosted(plugin("p", hook)).start(t)
	for i, where := range []phases.Context{{ThreadID: "t"}, {ThreadID: "sub", ConversationThreadID: "t"}, {ThreadID: "sub"}} {
		out := outcome(t)(eng.Dispatch(t.Context(), where, &phases.PrePromptCompileInput{}))
		if got, want := runOf(t, out, "p.h").State == phases.StateCached, i == 1; got != want {
			t.Errorf("dispatch %d: cached is %t", i, got)
		}
	}
}

// TestCachedBySets: what the turn has gathered is part of the key of those who
// may see it, whatever they vary with.
func TestCachedBySets(t *testing.T) {
	t.Parallel()
	hook := on("h", phases.PrePromptCompile, reply())
	hook.Cache = &phases.Cache{}
	policy := on("policy", phases.PrePolicy, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		return sdk.Reply(&phases.Policy{Common: phases.Common{Domain: "d"}, Key: "k", Value: raw(`"` + string(c.Context.Mode) + `"`)})
	}, phases.KindPolicy)
	recall := on("recall", phases.PrePromptContext, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		return sdk.Reply(&phases.PromptContext{Content: string(c.Context.Profile)})
	}, phases.KindPromptContext)
	for _, test := range []struct {
		name string
		see  []string
		// fresh says of each turn whether the hook is asked.
		fresh []bool
	}{
		{"nothing", nil, []bool{true, false, false, false}},
		{"policies", []string{"policy"}, []bool{true, true, false, false}},
		{"contexts", []string{"context"}, []bool{true, false, true, false}},
		{"both", []string{"policy", "context"}, []bool{true, true, true, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHosted(plugin("p", hook), plugin("q", policy, recall))
			h.plugin("p").Grants.See = test.see
			eng := h.start(t)
			for i, where := range []phases.Context{
				{Mode: "a", Profile: "full"}, {Mode: "b", Profile: "full"}, {Mode: "b", Profile: "minimal"}, {Mode: "b", Profile: "minimal"},
			} {
				turn := beginAt(t, eng, where)
				outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
				outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptContextInput{}))
				run := runOf(t, outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{})), "p.h")
				if got := run.State == phases.StateSucceeded; got != test.fresh[i] {
					t.Errorf("turn %d: %s", i, run.State)
				}
				outcome(t)(turn.End(t.Context(), nil))
			}
		})
	}
}
