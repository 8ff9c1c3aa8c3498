package runtime_test

import (
	"context"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// begin begins a turn.
func begin(t testing.TB, eng *runtime.Engine) *runtime.Turn {
	t.Helper()
	return beginAt(t, eng, host())
}

// beginAt begins a turn of a context.
func beginAt(t testing.TB, eng *runtime.Engine, c phases.Context) *runtime.Turn {
	t.Helper()
	turn, err := eng.BeginTurn(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// policyOf and contextOf are contributions.
func policyOf(key, value string) phases.Contribution {
	return &phases.Policy{Common: phases.Common{Domain: "d"}, Key: key, Value: raw(value)}
}

func contextOf(id, content string) phases.Contribution {
	return &phases.PromptContext{Common: phases.Common{ContributionID: id}, Content: content}
}

// bundle brings in one tool.
func bundle(tool string) phases.Contribution {
	return &phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: tool, Description: "a tool"}}}
}

// TestTurnAccumulates: later phases of a turn see what earlier ones brought, and
// a dispatch outside a turn leaves nothing behind.
func TestTurnAccumulates(t *testing.T) {
	t.Parallel()

	seen := make(chan *phases.Dispatch, 8)
	look := on("look", phases.PreCompaction, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		seen <- c.Dispatch
		return nil, nil
	})
	eng := newHosted(plugin("p",
		on("one", phases.PrePolicy, reply(policyOf("a", "1")), phases.KindPolicy),
		on("two", phases.PrePromptContext, reply(contextOf("c1", "first")), phases.KindPromptContext),
		on("three", phases.PostPreflight, reply(contextOf("c2", "second")), phases.KindPromptContext),
		on("four", phases.RuntimePreContext, reply(contextOf("c3", "third")), phases.KindPromptContext),
		look,
	)).start(t)
	turn := begin(t, eng)
	for _, phase := range []phases.Phase{phases.PrePolicy, phases.PrePromptContext, phases.PostPreflight, phases.RuntimePreContext, phases.PostCompaction, phases.PreCompaction} {
		outcome(t)(turn.Dispatch(t.Context(), inputOf(t, phase)))
	}
	d := <-seen
	var got []string
	for _, p := range d.Policies {
		got = append(got, p.Domain+"/"+p.Key+"="+string(p.Value)+" by "+p.Owner)
	}
	for _, c := range d.Contexts {
		got = append(got, c.ContributionID+"="+c.Content+" by "+c.Owner)
	}
	want := []string{"d/a=1 by p.one", "c1=first by p.two", "c2=second by p.three", "c3=third by p.four"}
	checkSame(t, "sets", got, want)
	if want := "w/t/1/turn.pre_compaction/1/p.look"; d.IdempotencyKey != want {
		t.Errorf("idempotency key %q, want %q", d.IdempotencyKey, want)
	}

	dispatch(t, eng, &phases.PreCompactionInput{})
	if d := <-seen; len(d.Policies)+len(d.Contexts) > 0 || d.IdempotencyKey != "" {
		t.Errorf("outside the turn: %+v", d)
	}
}

// TestToolPhasesRunTogether: two tool phases of a turn meet; other phases wait
// for each other.
func TestToolPhasesRunTogether(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) { // no hook is late, however busy the machine is
		var both sync.WaitGroup
		both.Add(2)
		meet := func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
			both.Done()
			both.Wait()
			return nil, nil
		}
		var inside, most atomic.Int32
		alone := func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
			most.Store(max(most.Load(), inside.Add(1)))
			goruntime.Gosched() // and no sleep: phases that wait for each other do not let time pass here
			inside.Add(-1)
			return nil, nil
		}
		turn := begin(t, newHosted(plugin("p", on("tool", phases.ToolPreCall, meet), on("policy", phases.PrePolicy, alone))).start(t))
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				out, err := turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "a"})
				if err != nil || out.Runs[0].State != phases.StateSucceeded {
					t.Errorf("the tool phases did not meet: %v, %v", states(out), err)
				}
			})
		}
		for range 16 {
			all.Go(func() {
				outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
			})
		}
		all.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d other phases at once", n)
		}
	})
}

// TestToolPhaseKeepsOthersWork: a tool phase that ends after another phase does
// not undo what that one brought.
func TestToolPhaseKeepsOthersWork(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		eng := newHosted(plugin("p",
			on("tool", phases.ToolPreCall, taking(500*ms)),
			on("facts", phases.PreCompaction, reply(contextOf("c", "a fact")), phases.KindPromptContext),
		)).start(t)
		turn := begin(t, eng)
		var tool sync.WaitGroup
		tool.Go(func() { outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "a"})) })
		time.Sleep(100 * ms)
		outcome(t)(turn.Dispatch(t.Context(), &phases.PreCompactionInput{}))
		tool.Wait()
		done := prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
		if !strings.Contains(done.Prompt.FullText, "a fact") {
			t.Errorf("the context is gone: %q", done.Prompt.FullText)
		}
	})
}

// TestEnd: it runs once, and queues the observers with a bounded input.
func TestEnd(t *testing.T) {
	t.Parallel()

	seen := make(chan *phases.PostTurnInput, 4)
	eng := newHosted(plugin("p", sdk.Hook{Name: "end", PostTurn: func(_ context.Context, _ *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
		seen <- in
		return nil, nil
	}})).start(t)
	turn := begin(t, eng)
	in := &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.Preview{Text: strings.Repeat("x", 5000)}}
	out := outcome(t)(turn.End(t.Context(), in))
	checkSame(t, "ledger", states(out), []string{"p.end queued"})
	if again, err := turn.End(t.Context(), in); again != out || err != nil {
		t.Errorf("second End = %v, %v, want what the first one gave", again, err)
	}
	waitBackground(t, eng)
	if got := <-seen; len(got.UserText.Text) != phases.MaxTurnText || got.Status != phases.TurnSucceeded || len(seen) > 0 {
		t.Errorf("observed %d characters, %d more calls", len(got.UserText.Text), len(seen))
	}
}

// TestCallToolOutside: outside of a turn a tool is its owner's, by grant.
func TestCallToolOutside(t *testing.T) {
	t.Parallel()

	h := newHosted(offering("p", says("secret", "x")), offering("q", says("weather", "sunny")))
	h.plugin("p").Grants.Tools = nil
	eng := h.start(t)
	for plugin, want := range map[string]phases.Cause{"p": phases.CauseForbidden, "none": phases.CauseUnavailable} {
		if _, err := eng.CallTool(t.Context(), plugin, phases.ToolCall{Tool: "secret"}); phases.CodeOf(err) != want {
			t.Errorf("CallTool of %s: %v", plugin, err)
		}
	}
	if res, err := eng.CallTool(t.Context(), "q", phases.ToolCall{Tool: "weather"}); err != nil || string(res.Content) != `"sunny"` {
		t.Errorf("granted: %v, %v", res, err)
	}
}

// TestSessions: start, resume and end carry the session's context.
func TestSessions(t *testing.T) {
	t.Parallel()

	var j journal
	note := func(name string) handler {
		return func(_ context.Context, c *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
			j.add(name + " " + c.Context.SessionID + " " + string(phases.PhaseOf(in)))
			return nil, nil
		}
	}
	eng := newHosted(plugin("p",
		on("start", phases.SessionStart, note("start")), on("resume", phases.SessionResume, note("resume")),
		on("end", phases.SessionEnd, note("end")),
	)).start(t)
	session, err := eng.StartSession(t.Context(), phases.Context{SessionID: "s"}, "startup")
	if err != nil || session.Context().Now.IsZero() || session.Outcome == nil {
		t.Fatalf("session = %+v, %v", session, err)
	}
	if _, err := eng.ResumeSession(t.Context(), session.Context(), &phases.SessionResumeInput{State: raw("{}")}); err != nil {
		t.Fatal(err)
	}
	outcome(t)(session.End(t.Context(), "exit"))
	waitBackground(t, eng)
	want := []string{"start s session.start", "resume s session.resume", "end s session.end"}
	checkSame(t, "phases", j.all(), want)
}

// TestSessionThatFailsClosed: the session is there all the same.
func TestSessionThatFailsClosed(t *testing.T) {
	t.Parallel()

	h := on("h", phases.SessionStart, failing(sdk.Fail("x", "x")))
	h.OnFailure = word(phases.FailClosed)
	session, err := newHosted(plugin("p", h)).start(t).StartSession(t.Context(), phases.Context{SessionID: "s"}, "startup")
	if session == nil || session.Outcome == nil || phases.CodeOf(err) != phases.CausePluginError {
		t.Errorf("session = %+v, %v", session, err)
	}
}

// TestDirRoot: a turn whose working folder is not below the directory that bounds it is
// refused.
func TestDirRoot(t *testing.T) {
	t.Parallel()

	eng := newHosted().start(t)
	for in, ok := range map[[2]string]bool{
		{"/a/b", ""}: true, {"/a", "/a"}: true, {"/a", "/"}: true, {"", "/a"}: true,
		{"/ab", "/a"}: false, {"/a/../b", "/a"}: false, {"/b", "/a"}: false, {"/a/b", "a"}: false,
	} {
		turn, err := eng.BeginTurn(t.Context(), phases.Context{Dir: in[0], DirRoot: in[1]})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "dir_root") {
			t.Errorf("%q in %q: %v", in[0], in[1], err)
		}
		if err == nil {
			outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{}))
		}
	}
}
