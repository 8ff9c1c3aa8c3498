package runtime_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestCachedAnswers pins section 8: an answer is used again while the fields it
// varies with are the same, until the plugin invalidates it.
func TestCachedAnswers(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	var host atomic.Pointer[phases.Host]
	hook := section("text", "rules", "Be brief.")
	inner := hook.PrePromptCompile
	hook.Cache = &phases.Cache{Vary: []string{"dir", "input.tool_calling"}, Tags: []string{"files"}}
	hook.PrePromptCompile = func(ctx context.Context, c *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		calls.Add(1)
		return inner(ctx, c, in)
	}
	p := plugin("house", hook)
	p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
		host.Store(&c.Host)
		return sdk.Setup{}, nil
	}
	eng := newHosted(p).start(t)

	steps := []struct {
		name  string
		dir   string
		tools bool
		drop  *phases.Invalidation
		calls int32
		state phases.RunState
	}{
		{"first", "/repo/a", false, nil, 1, phases.StateSucceeded},
		{"the same again", "/repo/a", false, nil, 1, phases.StateCached},
		{"another folder", "/repo/b", false, nil, 2, phases.StateSucceeded},
		{"another input", "/repo/b", true, nil, 3, phases.StateSucceeded},
		{"the first is still known", "/repo/a", false, nil, 3, phases.StateCached},
		{"another tag is invalidated", "/repo/a", false, &phases.Invalidation{Tags: []string{"other"}}, 3, phases.StateCached},
		{"its tag is invalidated", "/repo/a", false, &phases.Invalidation{Tags: []string{"files"}}, 4, phases.StateSucceeded},
		{"its subscription is invalidated", "/repo/a", false, &phases.Invalidation{Subscriptions: []string{"house.text"}}, 5, phases.StateSucceeded},
		{"so many names count as all", "/repo/a", false, &phases.Invalidation{Tags: make([]string, 257)}, 6, phases.StateSucceeded},
		{"all is invalidated", "/repo/a", false, &phases.Invalidation{}, 7, phases.StateSucceeded},
	}
	for _, s := range steps {
		if s.drop != nil {
			if err := (*host.Load()).Invalidate(t.Context(), *s.drop); err != nil {
				t.Fatalf("%s: Invalidate: %v", s.name, err)
			}
		}
		out, err := eng.Dispatch(t.Context(), phases.Context{Dir: s.dir}, &phases.PrePromptCompileInput{ToolCalling: s.tools})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		run := runOf(t, out, "house.text")
		if run.State != s.state || calls.Load() != s.calls {
			t.Errorf("%s: state %s after %d calls, want %s after %d", s.name, run.State, calls.Load(), s.state, s.calls)
		}
		if len(out.Merged.Sections) != 1 || (run.State == phases.StateCached) != (run.CachedFrom != "") {
			t.Errorf("%s: sections %v, cached from %q", s.name, out.Merged.Sections, run.CachedFrom)
		}
	}
}

// TestCachedByTextBudget: a plugin that fits its text into the budget that it gets is
// asked again when that is smaller.
func TestCachedByTextBudget(t *testing.T) {
	t.Parallel()
	var budgets []int
	long := 0
	hook := on("text", phases.PrePromptCompile, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		budgets = append(budgets, c.Budget.MaxChars)
		return sdk.Reply(&phases.PromptSection{SectionID: "rules", Content: "Be brief."})
	}, phases.KindPromptSection)
	hook.Cache = &phases.Cache{}
	h := newHosted(plugin("house", hook), plugin("other", on("long", phases.RuntimePreContext, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
		return sdk.Reply(&phases.PromptSection{SectionID: "long", Content: strings.Repeat("x", long)})
	}, phases.KindPromptSection)))
	h.cfg.Budgets.Turn.Chars = 1000
	eng := h.start(t)
	for _, long = range []int{0, 600, 600, 0, 1000} {
		turn := beginAt(t, eng, host())
		if long > 0 {
			outcome(t)(turn.Dispatch(t.Context(), &phases.RuntimePreContextInput{}))
		}
		outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{}))
		outcome(t)(turn.End(t.Context(), nil))
	}
	checkSame(t, "text budgets that the plugin was asked with", budgets, []int{1000, 400, 1})
}

// TestCachedIsOwn: what a host or a plugin does to what it holds of an answer
// changes no later one.
func TestCachedIsOwn(t *testing.T) {
	t.Parallel()
	given := &phases.Reminder{Type: "t", Text: "text", Attributes: map[string]string{"a": "b"}}
	given.Diagnostics = []phases.Diagnostic{{Code: "note", Message: "said"}}
	recalled := &phases.PromptContext{Content: "text", SourceRefs: []phases.SourceRef{{Kind: "file", ID: "a"}}}
	for _, test := range []struct {
		name  string
		phase phases.Phase
		reply phases.Contribution
		spoil func(*phases.Outcome)
	}{
		{"value", phases.PrePromptCompile, given, func(out *phases.Outcome) {
			r, _ := out.Contributions[0].Value.(*phases.Reminder)
			r.Text = "spoiled"
		}},
		{"map", phases.PrePromptCompile, given, func(out *phases.Outcome) { out.Merged.Reminders[0].Attributes["a"] = "spoiled" }},
		{"diagnostics", phases.PrePromptCompile, given, func(out *phases.Outcome) { out.Diagnostics[0].Message = "spoiled" }},
		{"list", phases.PrePromptContext, recalled, func(out *phases.Outcome) { out.Merged.Contexts[0].SourceRefs[0].ID = "spoiled" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			hook := on("h", test.phase, reply(phases.CloneContribution(test.reply)), phases.KindOf(test.reply))
			hook.Cache = &phases.Cache{}
			eng := newHosted(plugin("p", hook)).start(t)
			want := dispatch(t, newHosted(plugin("p", hook)).start(t), inputOf(t, test.phase))
			for range 3 {
				out := dispatch(t, eng, inputOf(t, test.phase))
				checkSame(t, "contributions", out.Contributions, want.Contributions)
				checkSame(t, "merged", out.Merged, want.Merged)
				checkSame(t, "diagnostics", out.Diagnostics, want.Diagnostics)
				test.spoil(out)
			}
		})
	}
}

// TestCachedForALifetime: an answer ends with its lifetime.
func TestCachedForALifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hook := on("h", phases.PrePromptCompile, reply())
		hook.Cache = &phases.Cache{TTL: phases.Duration(time.Minute)}
		eng := newHosted(plugin("p", hook)).start(t)
		for _, step := range []struct {
			after time.Duration
			want  phases.RunState
		}{{0, phases.StateSucceeded}, {time.Minute, phases.StateCached}, {1, phases.StateSucceeded}, {time.Second, phases.StateCached}} {
			time.Sleep(step.after)
			if got := runOf(t, dispatch(t, eng, &phases.PrePromptCompileInput{}), "p.h").State; got != step.want {
				t.Errorf("after %v: %s, want %s", step.after, got, step.want)
			}
		}
	})
}

// TestInvalidatedWhileAsked: an answer that was asked for before something
// changed is not kept.
func TestInvalidatedWhileAsked(t *testing.T) {
	t.Parallel()
	change := true
	hook := on("h", phases.PrePromptCompile, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		if change {
			return nil, c.Host.Invalidate(ctx, phases.Invalidation{})
		}
		return nil, nil
	})
	hook.Cache = &phases.Cache{}
	eng := newHosted(plugin("p", hook)).start(t)
	for i, want := range []phases.RunState{phases.StateSucceeded, phases.StateSucceeded, phases.StateSucceeded, phases.StateCached} {
		change = i < 2
		if got := runOf(t, dispatch(t, eng, &phases.PrePromptCompileInput{}), "p.h").State; got != want {
			t.Errorf("dispatch %d: %s, want %s", i, got, want)
		}
	}
}

// TestCachedAfterAReload: a turn that goes on with a configuration that was
// dropped is not told of invalidations, and so has nothing from memory.
func TestCachedAfterAReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hook := on("h", phases.PrePromptCompile, reply())
		hook.Cache = &phases.Cache{}
		h := newHosted(plugin("p", hook))
		eng := h.start(t)
		turn := beginAt(t, eng, host())
		state := func() phases.RunState {
			return runOf(t, outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{})), "p.h").State
		}
		state()
		reload(t, eng, h.reloaded(func(*hosted) {}))
		if got := state(); got != phases.StateCached {
			t.Errorf("after the reload: %s", got)
		}
		time.Sleep(2 * time.Minute)
		if got := state(); got != phases.StateSucceeded {
			t.Errorf("when it was dropped: %s", got)
		}
		outcome(t)(turn.End(t.Context(), nil))
	})
}

// TestCachedTransform: a rewrite from memory is applied, and a later hook's answer
// is looked up by what it sees, which is the rewritten result.
func TestCachedTransform(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	first := on("first", phases.ToolPostCall, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		return sdk.Reply(&phases.Rewrite{Path: "", Value: raw(`"` + c.Context.Dir[1:] + `"`)})
	}, phases.KindRewrite)
	second := on("second", phases.ToolPostCall, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		seen.Add(1)
		result, _ := in.(*phases.ToolPostCallInput)
		return sdk.Reply(&phases.Rewrite{Common: phases.Common{Priority: -1}, Path: "", Value: raw(`"` + result.Result.Text + result.Result.Text + `"`)})
	}, phases.KindRewrite)
	first.Role, second.Role = phases.RoleTransform, phases.RoleTransform
	first.Priority = 10
	second.Cache = &phases.Cache{Vary: []string{"input.result"}}
	eng := newHosted(plugin("p", first, second)).start(t)
	for _, step := range []struct {
		dir, want string
		calls     int32
	}{{"/a", "aa", 1}, {"/b", "bb", 2}, {"/a", "aa", 2}} {
		out := outcome(t)(eng.Dispatch(t.Context(), phases.Context{Dir: step.dir}, &phases.ToolPostCallInput{Tool: "x", Result: phases.NewPreview("plain", 100)}))
		got, _ := out.Rewritten.(*phases.ToolPostCallInput)
		if got.Result.Text != step.want || seen.Load() != step.calls {
			t.Errorf("%s: %q after %d calls, want %q after %d", step.dir, got.Result.Text, seen.Load(), step.want, step.calls)
		}
	}
}

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
