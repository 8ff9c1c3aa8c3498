package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestInline: hooks of an inline plugin run on the dispatching goroutine, others do not.
func TestInline(t *testing.T) {
	t.Parallel()

	stack := func(name string) *sdk.Plugin {
		return plugin(name, sdk.Hook{
			Name: "h", Kinds: []phases.Kind{phases.KindPromptSection},
			PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptSection{SectionID: name, Content: string(debug.Stack())})
			},
		})
	}
	h := newHosted(stack("here"), stack("there"))
	h.opts.Inline = []string{"here"}
	out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
	for id, want := range map[string]bool{"here": true, "there": false} {
		if got := strings.Contains(contentOf(out, id), "(*Engine).Dispatch("); got != want {
			t.Errorf("%s runs on the caller's goroutine: %v", id, got)
		}
	}
}

// TestAnswersBesideOneThatNeverComes: what the others have answered in time counts, although it is collected when the
// time of all is over.
func TestAnswersBesideOneThatNeverComes(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var hooks []sdk.Hook
		want := []string{"p.a timed_out timeout", "p.b failed plugin_error"}
		hooks = append(hooks, on("a", phases.PrePromptCompile, deaf(release)), on("b", phases.PrePromptCompile, failing(sdk.Fail("own", "no"))))
		for i := range 8 {
			name := fmt.Sprintf("c%d", i)
			h := section(name, name, "text")
			answer := h.PrePromptCompile
			h.PrePromptCompile = func(ctx context.Context, c *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return answer(ctx, c, in)
			}
			hooks, want = append(hooks, h), append(want, "p."+name+" succeeded")
		}
		eng := newHosted(plugin("p", hooks...)).start(t)
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkSame(t, "ledger", states(out), want)
		close(release)
		synctest.Wait()
	})
}

// broken is an error whose methods panic.
type broken struct{ text *string }

func (b *broken) Error() string { return *b.text }

// TestAnswersThatPanic: neither a panic of a plugin inside the host ends the host, nor an error or an answer that cannot
// even be looked at.
func TestAnswersThatPanic(t *testing.T) {
	t.Parallel()

	for _, inline := range []bool{false, true} {
		h := newHosted(
			plugin("error", on("h", phases.PrePromptCompile, failing((*broken)(nil)))),
			plugin("nil", on("h", phases.PrePromptCompile, reply((*phases.PromptSection)(nil)), phases.KindPromptSection)),
			plugin("panics", on("h", phases.PrePromptCompile, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) { panic("oh") })),
		)
		if inline {
			h.opts.Inline = []string{"error", "nil", "panics"}
		}
		out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
		for _, id := range []string{"error.h", "nil.h", "panics.h"} {
			if run := runOf(t, out, id); run.State != phases.StateFailed || run.PluginCode != phases.PluginCodePanic {
				t.Errorf("inline %v: %+v", inline, run)
			}
		}
	}
}

// TestTimesBesideASlowHook: spans and exchanges of hooks end when their answers come, not when they are collected.
func TestTimesBesideASlowHook(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := newHosted(plugin("p", on("slow", phases.PrePromptCompile, taking(100*ms)), on("swift", phases.PrePromptCompile, taking(ms))))
		begin, ends, took := time.Now(), map[string]time.Duration{}, map[string]float64{}
		h.opts.BeginRun = func(ctx context.Context, _ phases.Trace, _ *phases.Run) (context.Context, phases.Trace, func(*phases.Run, time.Time)) {
			return ctx, phases.Trace{}, func(run *phases.Run, end time.Time) { ends[run.Subscription] = end.Sub(begin) }
		}
		h.opts.OnExchange = func(x *runtime.Exchange) error {
			took[x.Subscription] = x.TookMS
			return nil
		}
		dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
		want := map[string]time.Duration{"p.slow": 100 * ms, "p.swift": ms}
		delete(took, "")
		checkSame(t, "ends", ends, want)
		checkSame(t, "times", took, map[string]float64{"p.slow": 100, "p.swift": 1})
	})
}

// TestFilteredByThePlugin: a hook that says that it is not for its input is filtered. It has answered, so a phase that
// requires it goes on, and what was rewritten meanwhile is put to it again.
func TestFilteredByThePlugin(t *testing.T) {
	t.Parallel()

	guard := on("guard", phases.ToolPreCall, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		if call, ok := in.(*phases.ToolPreCallInput); ok && string(call.Arguments) == `{"n":2}` {
			return sdk.Reply(deny("no"))
		}
		return sdk.Filtered()
	}, phases.KindDecision)
	guard.Role = phases.RoleValidate
	tidy := on("tidy", phases.ToolPreCall, reply(&phases.Rewrite{Path: "/n", Value: raw("2")}), phases.KindRewrite)
	tidy.Role, tidy.When = phases.RoleTransform, `tool.name == "one"`
	two := on("two", phases.ToolPreCall, reply(&phases.Noop{}, &phases.Noop{Common: phases.Common{ContributionID: phases.IDFiltered}}), phases.KindDecision)
	two.Role = phases.RoleValidate
	h := newHosted(plugin("p", tidy, guard, two))
	h.cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.ToolPreCall: requiring("p.guard")}
	eng := h.start(t)
	for tool, want := range map[string][]string{
		"none": {"p.tidy filtered", "p.guard filtered", "p.two succeeded"},
		"one":  {"p.tidy succeeded", "p.guard denied denied", "p.two succeeded"},
	} {
		out, err := eng.Dispatch(t.Context(), phases.Context{}, &phases.ToolPreCallInput{Tool: tool, Arguments: raw(`{"n":1}`)})
		if diff := cmp.Diff(states(out), want); diff != "" || err != nil && tool == "none" {
			t.Errorf("%s: %v (-got +want):\n%s", tool, err, diff)
		}
	}
}

// TestRefusedWithoutSlot: a hook whose breaker is open is answered for at once,
// although another call has the one slot that its plugin has, and beside a hook
// that takes its time. The same holds for one with retries: another attempt would
// have the same end.
func TestRefusedWithoutSlot(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		bad := &phases.PromptSection{SectionID: "s", Title: "s", Content: "x", Stability: "shaky"}
		section := []phases.Kind{phases.KindPromptSection}
		again := on("again", phases.RuntimePreContext, reply(bad), section...)
		again.Idempotent, again.Retry = true, &phases.Retry{Attempts: 3, Backoff: phases.Duration(100 * ms)}
		slow := on("slow", phases.PrePolicy, taking(time.Hour))
		slow.Timeout = time.Second
		h := newHosted(
			plugin("p", on("h", phases.PrePromptCompile, reply(bad), section...), again, slow),
			plugin("q", on("h", phases.PrePromptCompile, taking(50*ms))),
		)
		h.plugin("p").Limits.Concurrency = 1
		eng := h.start(t)
		for range 5 {
			dispatch(t, eng, &phases.PrePromptCompileInput{})
			dispatch(t, eng, &phases.RuntimePreContextInput{})
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = eng.Dispatch(context.WithoutCancel(t.Context()), host(), &phases.PrePolicyInput{}) // holds the slot
		}()
		synctest.Wait()
		begin := time.Now()
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		if took := time.Since(begin); took != 50*ms {
			t.Errorf("the dispatch took %v", took)
		}
		if run := runOf(t, out, "p.h"); run.Code != string(phases.CauseBreakerOpen) || run.Attempts != 1 || run.QueueMS != 0 {
			t.Errorf("run = %+v", run)
		}
		if run := runOf(t, out, "q.h"); run.State != phases.StateSucceeded {
			t.Errorf("the other one: %+v", run)
		}
		begin = time.Now()
		out = dispatch(t, eng, &phases.RuntimePreContextInput{})
		if run, took := runOf(t, out, "p.again"), time.Since(begin); run.Code != string(phases.CauseBreakerOpen) || run.Attempts != 1 || took != 0 {
			t.Errorf("refused for good: %+v after %v", run, took)
		}
		<-ended
	})
}

// TestPluginRows: outcomes share the rows of the plugins until one of them changes, and
// then have it at once.
func TestPluginRows(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		starts := 0
		late := onStart(plugin("late", on("h", phases.PrePolicy, reply())), func(context.Context) error {
			if starts++; starts < 3 {
				return sdk.Fail("down", "it cannot start")
			}
			return nil
		})
		eng := newHosted(plugin("good"), late).start(t)
		down := dispatch(t, eng, &phases.PrePolicyInput{})
		for range 60 {
			out := dispatch(t, eng, &phases.PrePolicyInput{})
			if want := fmt.Sprint(eng.Plugins()); fmt.Sprint(out.Plugins) != want {
				t.Errorf("the outcome has %v, want %s", out.Plugins, want)
			}
			if late := out.Plugins[1]; (late.State == phases.PluginReady) == strings.Contains(fmt.Sprint(codes(out)), "plugin_error") {
				t.Errorf("the plugin is %s, the diagnostics are %v", late.State, codes(out))
			}
			time.Sleep(100 * time.Millisecond)
		}
		up, again := dispatch(t, eng, &phases.PrePolicyInput{}), dispatch(t, eng, &phases.PrePolicyInput{})
		if down.Plugins[1].State != phases.PluginBackoff || up.Plugins[1].State != phases.PluginReady || up.Plugins[1].Version == "" {
			t.Errorf("first %+v, later %+v", down.Plugins[1], up.Plugins[1])
		}
		if &up.Plugins[0] != &again.Plugins[0] {
			t.Error("the rows were made again though nothing has changed")
		}
	})
}

// rowOf returns the ledger's row of a plugin.
func rowOf(t testing.TB, eng *runtime.Engine, plugin string) phases.PluginRow {
	t.Helper()
	for _, row := range eng.Plugins() {
		if row.Plugin == plugin {
			return row
		}
	}
	t.Fatalf("no row of %s", plugin)
	return phases.PluginRow{}
}

// TestOutcomesStay: what a dispatch returns is not in the memory that later ones use.
func TestOutcomesStay(t *testing.T) {
	t.Parallel()

	cached := section("cached", "b", "kept")
	cached.Cache = &phases.Cache{}
	cut := section("cut", "c", strings.Repeat("long ", 100))
	cut.Budget.Chars = 60
	eng := newHosted(plugin("house", section("text", "a", "plain"), cached, cut)).start(t)
	var all sync.WaitGroup
	for caller := range 4 {
		all.Go(func() {
			var first []byte
			var out *phases.Outcome
			for i := range 100 {
				turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: strconv.Itoa(caller), Mode: phases.ModeAgent}
				next, err := eng.Dispatch(t.Context(), turn, &phases.PrePromptCompileInput{})
				if err != nil || len(next.Merged.Sections) != 3 {
					t.Errorf("%v %+v", err, next)
					return
				}
				if i == 0 {
					out, first = next, asJSON(t, next)
				}
			}
			if now := asJSON(t, out); string(now) != string(first) {
				t.Errorf("an outcome changed from\n%s\nto\n%s", first, now)
			}
		})
	}
	all.Wait()
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()

	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return b
}

// TestLateAnswersReachNobody: what an abandoned call brings after all is not another call's answer.
func TestLateAnswersReachNobody(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	late := section("late", "late", "")
	late.Timeout = 20 * time.Millisecond
	late.PrePromptCompile = func(_ context.Context, c *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		if c.Context.TurnID == "blocked" {
			<-release
		}
		return sdk.Reply(&phases.PromptSection{SectionID: "late", Content: "of " + c.Context.TurnID})
	}
	eng := newHosted(plugin("house", late)).start(t)
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "blocked", Mode: phases.ModeAgent}
	for range 2 {
		if out, err := eng.Dispatch(t.Context(), turn, &phases.PrePromptCompileInput{}); err != nil || len(out.Merged.Sections) != 0 {
			t.Fatalf("%v %+v", err, out)
		}
	}
	for i := range 50 {
		if i == 25 {
			close(release)
		}
		turn.TurnID = strconv.Itoa(i)
		out, err := eng.Dispatch(t.Context(), turn, &phases.PrePromptCompileInput{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Merged.Sections { // none where the machine was too busy
			if s.Content != "of "+turn.TurnID {
				t.Errorf("turn %d got the answer %q", i, s.Content)
			}
		}
	}
}
