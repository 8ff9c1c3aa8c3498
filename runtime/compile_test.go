package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// whole is a plugin that takes part in every phase of a compiled turn.
func whole() *sdk.Plugin {
	return plugin("p",
		on("policy", phases.PrePolicy, reply(policyOf("a", "1")), phases.KindPolicy),
		on("recall", phases.PrePromptContext, reply(contextOf("c", "a remembered fact")), phases.KindPromptContext),
		on("planned", phases.PostPreflight, reply(contextOf("d", "a planned fact")), phases.KindPromptContext),
		on("tools", phases.PreTools, reply(bundle("weather")), phases.KindToolBundle),
		section("rules", "house_rules", "Be brief."),
		on("check", phases.PostPromptCompile, reply(allow()), phases.KindDecision),
	)
}

// compile runs a whole turn.
func compile(t testing.TB, eng *runtime.Engine, in runtime.CompileInput) (*runtime.Compiled, error) {
	t.Helper()
	done, err := eng.CompileTurn(t.Context(), host(), in)
	if done == nil || done.Manifest == nil {
		t.Fatalf("CompileTurn = %v, %v", done, err)
	}
	return done, err
}

func TestCompileTurn(t *testing.T) {
	t.Parallel()

	eng := newHosted(whole()).start(t)
	done := prompted(t)(compile(t, eng, runtime.CompileInput{UserText: "hello", ToolCalling: true, RecallPlan: raw("{}")}))
	for _, want := range []string{"a remembered fact", "a planned fact", "Be brief."} {
		if !strings.Contains(done.Prompt.FullText, want) {
			t.Errorf("%q is not in the prompt:\n%s", want, done.Prompt.FullText)
		}
	}
	if len(done.Tools) != 1 || done.Tools[0].Name != "weather" {
		t.Errorf("tools = %+v", done.Tools)
	}
	want := []string{
		"p.policy succeeded", "p.recall succeeded", "p.planned succeeded", "p.tools succeeded", "p.rules succeeded", "p.check succeeded",
	}
	checkSame(t, "ledger", rowsOf(done.Manifest.Runs), want)
	m := done.Manifest
	if m.ManifestID == "" || m.TurnID != "1" || len(m.Plugins) != 1 || len(m.Policies) != 1 || len(m.HookSources) != 6 {
		t.Errorf("manifest = %+v", m)
	}
}

// TestEqualTurns: equal turns give equal content, and only that: each has an id
// of its own.
func TestEqualTurns(t *testing.T) {
	t.Parallel()

	eng := newHosted(whole()).start(t)
	where := host()
	where.Now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	var hashes, ids []string
	for i := range 3 {
		in := runtime.CompileInput{UserText: "hello"}
		if i == 2 {
			in.ToolCalling, in.Facts = true, compiler.Facts{Date: "2026-05-05"}
		}
		done := prompted(t)(eng.CompileTurn(t.Context(), where, in))
		hashes, ids = append(hashes, done.Manifest.ContentHash), append(ids, done.Manifest.ManifestID)
	}
	if hashes[0] == "" || hashes[0] != hashes[1] || hashes[0] == hashes[2] {
		t.Errorf("content hashes %q", hashes)
	}
	if ids[0] == ids[1] {
		t.Errorf("two turns have the id %s", ids[0])
	}
}

// TestBlocked: a deny or an ask ends the turn without a prompt and with the
// ledger; a failed phase likewise.
func TestBlocked(t *testing.T) {
	t.Parallel()

	guard := func(phase phases.Phase, h handler) *sdk.Plugin {
		p := whole()
		p.Hooks = append(p.Hooks, on("guard", phase, h, phases.KindDecision))
		return p
	}
	tests := []struct {
		name   string
		plugin *sdk.Plugin
		code   string
		last   string
	}{
		{"deny before", guard(phases.PrePolicy, reply(deny("not today"))), "denied", "p.check cancelled phase_failed"},
		{"ask before", guard(phases.PrePolicy, reply(ask("sure?"))), "ask", "p.check cancelled phase_failed"},
		{"failed closed before", guard(phases.PrePolicy, failing(sdk.Fail("x", "x"))), "plugin_error", "p.check cancelled phase_failed"},
		{"deny after", guard(phases.PostPromptCompile, reply(deny("not that"))), "denied", "p.guard denied denied"},
		{"ask after", guard(phases.PostPromptCompile, reply(ask("sure?"))), "ask", "p.guard succeeded"},
		{"failed closed after", guard(phases.PostPromptCompile, failing(sdk.Fail("x", "x"))), "plugin_error", "p.guard failed plugin_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			done, err := compile(t, newHosted(tt.plugin).start(t), runtime.CompileInput{})
			if string(phases.CodeOf(err)) != tt.code || done.Error == nil || string(done.Error.Code) != tt.code {
				t.Errorf("error = %v, %+v", err, done.Error)
			}
			if done.Prompt != nil {
				t.Error("a blocked turn has a prompt")
			}
			if done.Error.Subscription != "p.guard" {
				t.Errorf("blocked by %q", done.Error.Subscription)
			}
			if runs := rowsOf(done.Manifest.Runs); len(runs) == 0 || runs[len(runs)-1] != tt.last {
				t.Errorf("ledger = %v, the last is not %q", runs, tt.last)
			}
			if done.Manifest.ContentHash == "" {
				t.Error("the manifest of a blocked turn is not sealed")
			}
		})
	}
}

// TestPostPromptCompile: the judge of the prompt has the manifest, and its text
// only by grant.
func TestPostPromptCompile(t *testing.T) {
	t.Parallel()

	for name, see := range map[string][]string{"with the text": {"manifest", "prompt_text"}, "without": {"manifest"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			seen := make(chan *phases.PostPromptCompileInput, 1)
			judge := plugin("judge", sdk.Hook{Name: "h", PostPromptCompile: func(_ context.Context, _ *sdk.Call, in *phases.PostPromptCompileInput) ([]phases.Contribution, error) {
				seen <- in
				return nil, nil
			}})
			h := newHosted(whole(), judge)
			h.plugin("judge").Grants.See = see
			done := prompted(t)(compile(t, h.start(t), runtime.CompileInput{}))
			in, want := <-seen, phases.Text{Withheld: true, Chars: len([]rune(done.Prompt.FullText))}
			if len(see) > 1 {
				want = phases.T(done.Prompt.FullText)
			}
			checkSame(t, "prompt text", in.PromptText, want)
			if !strings.Contains(string(in.Manifest), `"house_rules"`) {
				t.Errorf("the manifest: %s", in.Manifest)
			}
		})
	}
}
