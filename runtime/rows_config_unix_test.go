//go:build unix

package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// configuringRows are plugins and operators that do not agree.
func configuringRows() []rowCase {
	return []rowCase{
		{row: 22, mode: "two-hooks", start: "quarantined invalid_reply", then: detail("hooks[0]", "hooks[1]", `"h"`)},
		{row: 43, name: "reloaded", test: rowReloaded},
		{row: 46, name: "claims", test: rowClaims},
	}
}

// rowReloaded is row 43: a turn keeps the configuration that it began with, also
// where a call runs while another one is loaded, and one that the plugin refuses
// leaves all as it was.
func rowReloaded(t *testing.T, b *processBench) {
	t.Helper()
	gate := filepath.Join(t.TempDir(), "go")
	told := func(answer string, args ...string) *config.Config {
		p := bad(t, "bad", "told", args...)
		p.Config = raw(fmt.Sprintf(`{"answer":%q}`, answer))
		return patient(p, bad(t, "good", "good"))
	}
	eng := b.startWith(t, told("one", "hold="+gate), runtime.Options{})
	turn := begin(t, eng)
	var running sync.WaitGroup
	var out *phases.Outcome
	running.Go(func() { out, _ = turn.Dispatch(context.WithoutCancel(t.Context()), &phases.PrePromptCompileInput{}) })
	b.awaitLine(t, "bad", "called")
	if err := eng.Reload(t.Context(), told("two")); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dispatch(t, eng, &phases.PrePromptCompileInput{}), 2, "two")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	checkTold(t, out, 1, "one")
	checkTold(t, outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{})), 1, "one")
	outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{}))
	b.awaitState(t, "bad", phases.PluginStopped, 1)
	if err := eng.Reload(t.Context(), told("refuse")); err == nil || !strings.Contains(err.Error(), "not that one") {
		t.Errorf("Reload: %v", err)
	}
	b.awaitState(t, "bad", phases.PluginStopped, 2) // the one that was refused
	out = dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkTold(t, out, 2, "two")
	checkGood(t, eng, out)
	stillUp(t, b, eng, out)
}

// checkTold checks under which configuration a call was made.
func checkTold(t *testing.T, out *phases.Outcome, generation uint64, answer string) {
	t.Helper()
	run := runOf(t, out, "bad.h")
	if got := contentOf(out, "bad"); got != fmt.Sprintf(`{"answer":%q}`, answer) || run.Generation != generation {
		t.Errorf("generation %d says %q, want %d with %q; %v", run.Generation, got, generation, answer, states(out))
	}
}

// rowClaims is row 46: what a plugin says of itself gives it nothing. Only the
// operator's grants do.
func rowClaims(t *testing.T, b *processBench) {
	t.Helper()
	p := bad(t, "bad", "claims")
	p.Grants = phases.Grants{Contribute: []string{"prompt_section"}, Sections: []string{"bad"}}
	cfg := patient(p)
	for _, phase := range []phases.Phase{phases.PrePolicy, phases.PreTools} {
		cfg.Budgets.Phases[phase] = budget(2 * generous)
	}
	eng := b.startWith(t, cfg, runtime.Options{})
	turn := begin(t, eng)
	for in, want := range map[phases.Input]string{
		&phases.PrePolicyInput{}: "bad.policy disabled not_granted",
		&phases.PreToolsInput{}:  "bad.tools disabled not_granted",
	} {
		out := outcome(t)(turn.Dispatch(t.Context(), in))
		if diff := cmp.Diff(states(out), []string{want}); diff != "" || len(out.Merged.Policies)+len(out.Merged.Tools) > 0 {
			t.Errorf("ledger (-got +want):\n%s; merged %+v", diff, out.Merged)
		}
	}
	out := outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{Sections: []string{"secret"}}))
	if got := contentOf(out, "bad"); got != "host forbidden, policies 0, sections []" || len(out.Merged.Sections) != 1 || out.Decision != nil {
		t.Errorf("merged %+v, decision %v", out.Merged.Sections, out.Decision)
	}
	if got := sorted(codes(out)); !slices.Contains(got, "forbidden bad.h") || !slices.Contains(got, "contribution_not_allowed bad.h") {
		t.Errorf("diagnostics: %q", got)
	}
	if res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "rm"}); phases.CodeOf(err) != phases.CauseForbidden {
		t.Errorf("the tool: %v, %v", res, err)
	}
	stillUp(t, b, eng, out)
}
