package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// sources writes the hook_sources of a manifest down: "kind id section truncation".
func sources(m *manifest.Manifest) []string {
	lines := []string{}
	for _, h := range m.HookSources {
		section := h.SectionID
		if section == "" {
			section = "-"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", h.ContributionKind, h.ContributionID, section, h.Truncation))
	}
	return lines
}

// TestHookSources: one row for each contribution that was kept, with the word for
// whose limit cut it and the section that its text went to.
func TestHookSources(t *testing.T) {
	t.Parallel()

	sized := func(id string, chars, limit int, self *phases.SelfCut) phases.Contribution {
		return &phases.PromptSection{
			Common: phases.Common{ContributionID: id}, SectionID: id, Content: strings.Repeat("line\n", chars/5), MaxChars: limit, Cut: self,
			SourceRefs: []phases.SourceRef{{Kind: "file", ID: "a"}, {Kind: "file", ID: "b"}},
		}
	}
	hidden := contextOf("handed-on", "not for the prompt")
	hidden.(*phases.PromptContext).Render = new(bool) //nolint:forcetypeassert // made in the line above
	h := newHosted(plugin("p",
		on("recall", phases.PrePromptContext, reply(contextOf("", "a fact"), contextOf("", "a fact"), hidden, contextOf("long", strings.Repeat("x", 13_000))), phases.KindPromptContext),
		on("text", phases.PrePromptCompile, reply(
			sized("whole", 100, 0, nil), sized("own", 1000, 500, nil), sized("said", 100, 0, &phases.SelfCut{Original: 900, Kept: 100}),
			sized("house", 30_000, 0, nil), sized("both", 30_000, 0, &phases.SelfCut{Original: 90_000, Kept: 30_000}),
		), phases.KindPromptSection),
	))
	done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
	want := []string{
		"prompt_context p.recall#0 dynamic_context none", "prompt_context p.recall#1 dynamic_context none",
		"prompt_context handed-on - none", "prompt_context long dynamic_context prompt",
		// the contribution's id, then the section's
		"prompt_section whole whole none", "prompt_section own own hook", "prompt_section said said hook", //nolint:dupword // two ids
		"prompt_section house house prompt", "prompt_section both both hook_and_prompt", //nolint:dupword // two ids
	}
	checkSame(t, "hook_sources", sources(done.Manifest), want)
	list := done.Manifest.HookSources
	if list[0].ContributionHash == list[1].ContributionHash || !strings.HasPrefix(list[0].ContributionHash, "sha256:") {
		t.Errorf("hashes %s and %s: an id is part of what is hashed", list[0].ContributionHash, list[1].ContributionHash)
	}
	if list[4].SourceCount != 2 || list[4].Phase != phases.PrePromptCompile || list[4].HookID != "text" || list[4].SubscriptionID != "p.text" ||
		list[4].Plugin != "p" || list[4].PluginVersion != "1.0.0" {
		t.Errorf("row %+v", list[4])
	}
}

// TestSessionSources: what the begin of a session brought into the prompt of a
// turn has its rows in the turn's manifest.
func TestSessionSources(t *testing.T) {
	t.Parallel()

	eng := newHosted(plugin("p",
		on("greet", phases.SessionStart, reply(contextOf("hello", "the user is Ada"), &phases.Noop{}), phases.KindPromptContext),
		on("recall", phases.PrePromptContext, reply(contextOf("c", "a fact")), phases.KindPromptContext),
	)).start(t)
	where := host()
	where.SessionID = "s"
	startSession(t, eng, where)
	for range 2 {
		done := prompted(t)(eng.CompileTurn(t.Context(), where, runtime.CompileInput{}))
		checkSame(t, "hook_sources", sources(done.Manifest), []string{"prompt_context hello dynamic_context none", "prompt_context c dynamic_context none"})
		if m := done.Manifest; m.HookSources[0].Phase != phases.SessionStart || m.SessionID != "s" || !strings.Contains(done.Prompt.FullText, "Ada") {
			t.Errorf("session %q, row %+v", m.SessionID, m.HookSources[0])
		}
	}
}

// TestBudgetRows: each dispatch has a row with what it was granted and used.
func TestBudgetRows(t *testing.T) {
	t.Parallel()

	h := newHosted(whole())
	h.cfg.Budgets.Turn.Chars, h.hurried = 5000, true
	done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{RecallPlan: raw("{}")}))
	var got []string
	for _, p := range done.Manifest.Budgets.Phases {
		got = append(got, fmt.Sprintf("%s %v ms, %d of %d chars", p.Phase, p.GrantedMS, p.UsedChars, p.GrantedChars))
	}
	want := []string{
		"turn.pre_policy 500 ms, 0 of 0 chars", "turn.pre_prompt_context 2000 ms, 17 of 12000 chars",
		"turn.post_preflight_prompt_context 3000 ms, 14 of 12000 chars", "turn.pre_tool_materialization 500 ms, 0 of 0 chars",
		"turn.pre_prompt_compile 1000 ms, 9 of 5000 chars", "turn.post_prompt_compile 500 ms, 0 of 0 chars",
	}
	checkSame(t, "budgets", got, want)
	if turn := done.Manifest.Budgets.Turn; turn.GrantedChars != 5000 || turn.UsedChars != 9 || turn.GrantedMS != 10_000 {
		t.Errorf("turn %+v", turn)
	}
}

// TestFlood: a plugin that says too much fills neither the manifest nor the
// host's memory, and takes nothing away from the others.
func TestFlood(t *testing.T) {
	t.Parallel()

	var flood []phases.Contribution
	for i := range phases.MaxContributions {
		d := &phases.ManifestDiagnostic{Code: "noise", Message: fmt.Sprint(i, strings.Repeat("n", 20_000)), SafeForUser: true}
		d.Diagnostics = []phases.Diagnostic{{Code: "more", Message: fmt.Sprint(i, strings.Repeat("m", 20_000))}}
		flood = append(flood, d)
	}
	quiet := plugin("quiet", on("h", phases.PrePromptCompile, reply(&phases.ManifestDiagnostic{Code: "one_word"})))
	broken := plugin("zbroken", on("h", phases.PrePromptCompile, failing(sdk.Fail("x", "x"))))
	s := &memorySink{}
	h := newHosted(plugin("flood", on("h", phases.PrePromptContext, reply(flood...)), on("i", phases.PrePromptCompile, reply(flood...))), quiet, broken)
	h.opts.Sink = s
	done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
	counts := map[string]int{}
	for _, d := range done.Manifest.Diagnostics {
		counts[d.Code]++
	}
	if counts["diagnostics_dropped"] != 1 || counts["one_word"] != 1 || counts["fail_open"] != 1 || counts["noise"]+counts["more"] == 0 {
		t.Errorf("diagnostics %v", counts)
	}
	if !hasCode(done.Diagnostics, "diagnostics_dropped") {
		t.Errorf("the host is not told: %v", counts)
	}
	b, err := manifest.Canonical(s.records[0])
	if err != nil {
		t.Fatal(err)
	}
	if rows := len(done.Manifest.HookSources); rows != 2*phases.MaxContributions+1 {
		t.Errorf("%d hook_sources: each contribution has its row", rows)
	}
	if len(b) > 1<<20 {
		t.Errorf("the manifest has %d bytes", len(b))
	}
}

// TestOddWords: what a plugin writes where nobody expects text does not keep a
// manifest from being written.
func TestOddWords(t *testing.T) {
	t.Parallel()

	const odd = "a\xff\x00b"
	p := plugin("p",
		on("h", phases.PrePromptContext, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
			return nil, &phases.Error{Code: phases.CausePluginError, PluginCode: odd, Message: odd}
		}),
		on("i", phases.PrePromptCompile, reply(&phases.Noop{Common: phases.Common{Diagnostics: []phases.Diagnostic{{Code: "c", Slot: odd, Severity: odd}}}})),
	)
	s := &memorySink{}
	h := newHosted(p)
	h.opts.Sink = s
	done, err := compile(t, h.start(t), runtime.CompileInput{})
	if err != nil || done.Prompt == nil {
		t.Fatalf("the turn fails: %v", err)
	}
	if err := manifest.Validate(s.records[0]); err != nil {
		t.Error(err)
	}
	b, err := manifest.Canonical(s.records[0])
	if err != nil || strings.Contains(string(b), `\u0000`) {
		t.Errorf("%v, a NUL in it: %v", err, strings.Contains(string(b), `\u0000`))
	}
}

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
	if got := compiledAt(t, again, "s3", "t", runtime.CompileInput{Provider: "openai", Model: "gpt"}); got.Manifest.Cache.Cause != "model" {
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
				if !hasCode(first.Diagnostics, "previous_unavailable") || hasCode(second.Diagnostics, "previous_unavailable") {
					t.Errorf("diagnostics %+v, then %+v", first.Diagnostics, second.Diagnostics)
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
