package turnpolicy

import (
	"encoding/json"
	"math"
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
		{"no switch", func(p *Policy) { p.ActiveRecall = "" }, `active_recall: "" is not one of`},
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

// TestNoSaveRestricts: "don't save" allows what both the default and no_save allow.
func TestNoSaveRestricts(t *testing.T) {
	t.Parallel()
	for def, want := range map[Default]Preset{DefaultAllow: NoSave, ReadOnly: NoSave, StrictDeny: NoUse} {
		got := granted(def.Preset(), []Wish{{Intent: IntentNoSave, Confidence: 1}})
		if diff := cmp.Diff(got, want.Policy()); diff != "" {
			t.Errorf("%s (-got +want):\n%s", def, diff)
		}
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
