package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

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
	if !slices.Contains(noted(done.Diagnostics), "diagnostics_dropped") {
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
