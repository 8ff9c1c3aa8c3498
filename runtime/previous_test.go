package runtime_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// predicting is a host that knows a model's cache and counts characters.
func predicting(s *memorySink) *hosted {
	h := newHosted(whole())
	h.opts.CountTokens, h.opts.TokenizerName = func(s string) int { return len(s) }, "bytes"
	h.opts.CacheRules = func(provider, model string) (compiler.CacheRules, bool) {
		return compiler.CacheRules{Explicit: provider == "anthropic", Lifetime: 5 * time.Minute}, model != "unknown"
	}
	if s != nil {
		h.opts.Sink = s
	}
	return h
}

// compiledAt compiles a turn of a session and thread.
func compiledAt(t *testing.T, eng *runtime.Engine, session, thread string, in runtime.CompileInput) *runtime.Compiled {
	t.Helper()
	where := host()
	where.SessionID, where.ThreadID = session, thread
	done := prompted(t)(eng.CompileTurn(t.Context(), where, in))
	return done
}

// TestPrevious: the previous prompt is that of the thread, in whatever session,
// and comes out of memory, or for a thread that is new to the engine from the
// sink, which is asked once.
func TestPrevious(t *testing.T) {
	t.Parallel()

	s := &memorySink{}
	in := runtime.CompileInput{Provider: "anthropic", Model: "m"}
	predicted := func(done *runtime.Compiled) int {
		if p := done.Manifest.Cache.Predicted; p != nil {
			return *p
		}
		return -1
	}
	eng := predicting(s).start(t)
	if got := predicted(compiledAt(t, eng, "s1", "t", in)); got != -1 {
		t.Errorf("the first prompt of a thread has a prediction of %d", got)
	}
	second := compiledAt(t, eng, "s1", "t", in)
	third := compiledAt(t, eng, "s2", "t", in)
	if a, b := predicted(second), predicted(third); a <= 0 || b <= a {
		t.Errorf("predicted %d, then with a breakpoint behind the dynamic part %d", a, b)
	}
	if got := predicted(compiledAt(t, eng, "s1", "other", in)); got != -1 {
		t.Errorf("another thread has a prediction of %d", got)
	}
	if got := s.calls["Last"]; got != 2 {
		t.Errorf("the sink was asked %d times for two threads", got)
	}
	again := predicting(s).start(t)
	if got, want := predicted(compiledAt(t, again, "s3", "t", in)), predicted(third); got != want {
		t.Errorf("another engine predicts %d, want %d", got, want)
	}
	if got := compiledAt(t, again, "s3", "t", runtime.CompileInput{Provider: "openai", Model: "unknown"}); predicted(got) != -1 {
		t.Errorf("a prediction for an unknown model: %+v", got.Manifest.Cache)
	}
	if got := compiledAt(t, again, "s3", "t", runtime.CompileInput{Provider: "openai", Model: "gpt"}); got.Manifest.Cache.Cause != manifest.CauseModel {
		t.Errorf("after a change of the model: %+v", got.Manifest.Cache)
	}
	if _, err := again.CompileTurn(t.Context(), phases.Context{}, in); err != nil || s.calls["Last"] != 3 {
		t.Errorf("a turn of no thread: %v, asked %d times", err, s.calls["Last"])
	}
}

// TestPreviousUnavailable: a sink that cannot say what was before costs a
// diagnostic and never a turn, once a thread.
func TestPreviousUnavailable(t *testing.T) {
	t.Parallel()

	for _, hangs := range []bool{false, true} {
		t.Run(map[bool]string{false: "fails", true: "hangs"}[hangs], func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				var j journal
				release := make(chan struct{})
				s := &memorySink{before: failingAt("Last", errors.New("no such table"))}
				want, took := "previous_unavailable unavailable", time.Duration(0)
				if hangs {
					s.before = hangingAt("Last", release)
					want, took = "previous_unavailable timeout", 500*time.Millisecond
				}
				h := predicting(s)
				h.opts.OnEvent = j.events(runtime.EventManifest)
				eng := h.start(t)
				t.Cleanup(func() { close(release) })
				begun := time.Now()
				first := compiledAt(t, eng, "", "t", runtime.CompileInput{Model: "m"})
				if time.Since(begun) != took {
					t.Errorf("it took %s, want %s", time.Since(begun), took)
				}
				second := compiledAt(t, eng, "", "t", runtime.CompileInput{Model: "m"})
				if !slices.Contains(noted(first.Diagnostics), "previous_unavailable") || slices.Contains(noted(second.Diagnostics), "previous_unavailable") {
					t.Errorf("diagnostics %v, then %v", noted(first.Diagnostics), noted(second.Diagnostics))
				}
				if !slices.ContainsFunc(first.Manifest.Diagnostics, func(d manifest.Diagnostic) bool {
					return d.Code == "previous_unavailable" && d.Message != ""
				}) {
					t.Errorf("not in the manifest: %+v", first.Manifest.Diagnostics)
				}
				checkSame(t, "events", j.all(), []string{want})
				if second.Manifest.Cache.Predicted == nil || len(s.records) != 2 {
					t.Errorf("second turn %+v, kept %d", second.Manifest.Cache, len(s.records))
				}
			})
		})
	}
}

// TestBlockedIsNotPrevious: a prompt that was not handed out is in no provider's
// cache, also for an engine that knows it only from the sink.
func TestBlockedIsNotPrevious(t *testing.T) {
	t.Parallel()

	s := &memorySink{}
	compiledAt(t, predicting(s).start(t), "", "t", runtime.CompileInput{Model: "m"})
	h := predicting(s)
	judge := plugin("judge", on("h", phases.PostPromptCompile, reply(deny("no")), phases.KindDecision))
	h.cfg.Plugins = append(h.cfg.Plugins, config.Plugin{Name: "judge", Grants: allGrants()})
	h.opts.InProcess["judge"] = judge
	blocked, err := compile(t, h.start(t), runtime.CompileInput{Model: "m"})
	if phases.CodeOf(err) != phases.CauseDenied || len(blocked.Manifest.Sections) == 0 {
		t.Fatalf("not blocked: %v", err)
	}
	if c := blocked.Manifest.Cache; c.Predicted != nil || len(c.Plan.Breakpoints) > 0 || c.Model != "m" {
		t.Errorf("cache of a blocked turn: %+v", c)
	}
	if done := compiledAt(t, predicting(s).start(t), "", "t", runtime.CompileInput{Model: "m"}); done.Manifest.Cache.Predicted != nil {
		t.Errorf("predicted %d from a prompt that nobody was sent", *done.Manifest.Cache.Predicted)
	}
}

// TestUnstableStaysMoved: what was moved to the dynamic part because it changes
// stays there, also where it was all of the stable part.
func TestUnstableStaysMoved(t *testing.T) {
	t.Parallel()

	h := newHosted() // no tools, no sections of plugins
	h.opts.Sink = &memorySink{}
	eng := h.start(t)
	var got []phases.Stability
	for i, identity := range []string{"a", "b", "c", "c", "d", "e"} {
		if i == 5 {
			eng = h.start(t) // which has only the sink to remember
		}
		in := runtime.CompileInput{Profile: phases.ProfileNone, MoveUnstable: true, Host: compiler.HostTexts{Identity: identity}}
		got = append(got, compiledAt(t, eng, "s", "t", in).Manifest.Sections[0].Stability)
	}
	want := append([]phases.Stability{phases.StabilityStable}, slices.Repeat([]phases.Stability{phases.StabilityDynamic}, 5)...)
	checkSame(t, "the identity is", got, want)
}
