package runtime_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

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
		{"all is invalidated", "/repo/a", false, &phases.Invalidation{}, 6, phases.StateSucceeded},
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

// TestCachedByRoom: a plugin that fits its text into the room that it is told is
// asked again when there is less of it.
func TestCachedByRoom(t *testing.T) {
	t.Parallel()
	var rooms []int
	hook := on("text", phases.PrePromptCompile, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		rooms = append(rooms, c.Room.MaxChars)
		return sdk.Reply(&phases.PromptSection{SectionID: "rules", Content: "Be brief."})
	}, phases.KindPromptSection)
	hook.Cache = &phases.Cache{}
	h := newHosted(plugin("house", hook), plugin("other", on("long", phases.RuntimePreContext, reply(
		&phases.PromptSection{SectionID: "long", Content: strings.Repeat("x", 600)},
	), phases.KindPromptSection)))
	h.cfg.Budgets.Turn.Chars = 1000
	eng := h.start(t)
	for _, long := range []bool{false, true, true, false} {
		turn, err := eng.BeginTurn(t.Context(), host())
		if err != nil {
			t.Fatal(err)
		}
		if long {
			if _, err := turn.RuntimePreContext(t.Context(), &phases.RuntimePreContextInput{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{}); err != nil {
			t.Fatal(err)
		}
		if _, err := turn.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(rooms, []int{1000, 400}); diff != "" {
		t.Errorf("rooms that the plugin was asked with (-got +want):\n%s", diff)
	}
}
