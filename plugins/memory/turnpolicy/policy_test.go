package turnpolicy

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPresetJSON pins the JSON, which other programs read.
func TestPresetJSON(t *testing.T) {
	t.Parallel()
	tests := map[Preset]string{
		Normal:         `{"recall":"allow","remember_tool":"allow","forget_tool":"allow","post_turn_extraction":"allow","active_recall":"allow","read_tools":"allow","prompt":"full","explicit_remember":false,"explicit_forget":false,"reason_code":"","confidence":0,"source":""}`,
		NoUse:          `{"recall":"disabled","remember_tool":"disabled","forget_tool":"disabled","post_turn_extraction":"disabled","active_recall":"disabled","read_tools":"disabled","prompt":"disabled","explicit_remember":false,"explicit_forget":false,"reason_code":"","confidence":0,"source":""}`,
		NoSave:         `{"recall":"allow","remember_tool":"disabled","forget_tool":"disabled","post_turn_extraction":"disabled","active_recall":"allow","read_tools":"allow","prompt":"read_only","explicit_remember":false,"explicit_forget":false,"reason_code":"","confidence":0,"source":""}`,
		ExplicitForget: `{"recall":"disabled","remember_tool":"disabled","forget_tool":"allow","post_turn_extraction":"disabled","active_recall":"disabled","read_tools":"forget_only","prompt":"forget_only","explicit_remember":false,"explicit_forget":true,"reason_code":"","confidence":0,"source":""}`,
	}
	if len(tests) != len(presets()) {
		t.Errorf("%d presets are pinned, and there are %d", len(tests), len(presets()))
	}
	for preset, want := range tests {
		got, err := json.Marshal(preset.Policy())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", preset, diff)
		}
	}
}

// TestNothingByDefault: what is not said is not allowed.
func TestNothingByDefault(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(Preset("full").Policy(), NoUse.Policy()); diff != "" {
		t.Errorf("an unknown preset (-got +want):\n%s", diff)
	}
	var zero Policy
	for _, s := range []Switch{zero.Recall, zero.RememberTool, zero.ForgetTool, zero.PostTurnExtraction, zero.ActiveRecall, Disabled, "yes"} {
		if s.Allowed() {
			t.Errorf("%q allows", s)
		}
	}
	if !Allow.Allowed() {
		t.Error("allow does not allow")
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*Policy)
		want   string
	}{
		{"a preset", func(*Policy) {}, ""},
		{"longest target", func(p *Policy) { p.ForgetTarget = strings.Repeat("é", MaxTarget) }, ""},
		{"no switch", func(p *Policy) { p.ActiveRecall = "" }, `active_recall: "" is none of`},
		{"another word", func(p *Policy) { p.RememberTool = "on" }, `remember_tool: "on"`},
		{"read tools", func(p *Policy) { p.ReadTools = "full" }, `read_tools: "full"`},
		{"prompt", func(p *Policy) { p.Prompt = "allow" }, `prompt: "allow"`},
		{"source", func(p *Policy) { p.Source = "me" }, `source: "me"`},
		{"too sure", func(p *Policy) { p.Confidence = 1.01 }, "confidence: 1.01"},
		{"no number", func(p *Policy) { p.Confidence = math.NaN() }, "confidence: NaN"},
		{"target too long", func(p *Policy) { p.ForgetTarget = strings.Repeat("é", MaxTarget+1) }, "forget_target: more than 200 characters"},
		{"reason too long", func(p *Policy) { p.ReasonCode = strings.Repeat("x", maxReason+1) }, "reason_code: more than"},
		{"no text", func(p *Policy) { p.Language = "\xff" }, "language: not UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Normal.Policy()
			p.Source = SourceRules
			tt.change(&p)
			wantError(t, p.Validate(), tt.want)
		})
	}
}

// TestRestrict: what comes out is allowed by both, and nothing that both allow is
// lost.
func TestRestrict(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		a, b := randomPolicy(rng), randomPolicy(rng)
		ab, ba := restrict(a, b), restrict(b, a)
		if diff := cmp.Diff(ab, ba); diff != "" {
			t.Fatalf("the order matters (-ab +ba):\n%s", diff)
		}
		if got, want := ab.Recall.Allowed(), a.Recall.Allowed() && b.Recall.Allowed(); got != want {
			t.Fatalf("recall %v of %v and %v", got, a.Recall, b.Recall)
		}
		if diff := cmp.Diff(restrict(ab, b), ab); diff != "" {
			t.Fatalf("twice is not once (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(restrict(a, Normal.Policy()), a); diff != "" {
			t.Fatalf("normal restricts (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(restrict(a, NoUse.Policy()), NoUse.Policy()); diff != "" {
			t.Fatalf("no_use allows (-got +want):\n%s", diff)
		}
	}
}

// randomPolicy has any of the words that a policy may have.
func randomPolicy(rng *rand.Rand) Policy {
	on := func() Switch { return switches()[rng.IntN(2)] }
	return Policy{
		Recall: on(), RememberTool: on(), ForgetTool: on(), PostTurnExtraction: on(), ActiveRecall: on(),
		ReadTools: readings()[rng.IntN(3)], Prompt: prompts()[rng.IntN(4)],
	}
}

// wantError compares an error's text; "" is no error.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("no error, want %q", want)
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		t.Errorf("error %q, want %q", err, want)
	}
}
