package turnpolicy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// sees is a classifier with one answer.
func sees(wishes ...Wish) func(string) Answer {
	a := Answer{Wishes: wishes, Rules: []string{"xx.any"}}
	a.sort()
	return func(string) Answer { return a }
}

// sure is a wish above the threshold.
func sure(intent Intent) Wish {
	return Wish{Intent: intent, Confidence: 0.9, Rule: "xx." + string(intent), Language: "xx"}
}

// TestOrder: who is asked first decides.
func TestOrder(t *testing.T) {
	t.Parallel()
	asked := func(string) Answer {
		t.Error("the classifier is asked although something else decides")
		return Answer{}
	}
	wish := sees(sure(IntentNoSave))
	tests := []struct {
		name       string
		in         Input
		o          Options
		source     Source
		reason     string
		confidence float64
		recall     Switch
	}{
		{"chat", Input{Mode: phases.ModeChat, Override: json.RawMessage(`"normal"`)}, Options{Classify: asked}, SourceMode, reasonChatMode, 1, Disabled},
		{"override", Input{Mode: phases.ModeAgent, Override: json.RawMessage(`"no_save"`)}, Options{Default: StrictDeny, Classify: asked}, SourceOverride, reasonOverride, 1, Allow},
		{"bad override", Input{Override: json.RawMessage(`"nothing"`)}, Options{Classify: asked}, SourceOverride, reasonBadOverride, 1, Disabled},
		{"null is no override", Input{Override: json.RawMessage(" null ")}, Options{Classify: wish}, SourceRules, "xx.no_save", 0.9, Allow},
		{"classifier", Input{Mode: phases.ModeTask}, Options{Classify: wish}, SourceRules, "xx.no_save", 0.9, Allow},
		{"nothing wished", Input{}, Options{Classify: sees()}, SourceDefault, "default.default_allow", 0, Allow},
		{"no classifier", Input{}, Options{Default: ReadOnly}, SourceDefault, "default.read_only", 0, Allow},
		{"strict", Input{}, Options{Default: StrictDeny}, SourceDefault, "default.strict_deny", 0, Disabled},
		{"unknown default", Input{}, Options{Default: "open"}, SourceDefault, "default.open", 0, Disabled},
		{"below the threshold", Input{}, Options{Default: StrictDeny, Classify: sees(Wish{Intent: IntentRemember, Confidence: 0.59})}, SourceDefault, "below_threshold.strict_deny", 0.59, Disabled},
		{"at the threshold", Input{}, Options{Classify: sees(Wish{Intent: IntentNoSave, Confidence: DefaultThreshold, Rule: "xx.no_save"})}, SourceRules, "xx.no_save", DefaultThreshold, Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Decide(tt.in, tt.o)
			got := []any{p.Source, p.ReasonCode, p.Confidence, p.Recall}
			if diff := cmp.Diff(got, []any{tt.source, tt.reason, tt.confidence, tt.recall}); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGranted: what wishes come to, by the default that they meet.
func TestGranted(t *testing.T) {
	t.Parallel()
	target := sure(IntentForget)
	target.Target = "my address"
	remember, noSave, noUse := sure(IntentRemember), sure(IntentNoSave), sure(IntentNoUse)
	tests := []struct {
		name    string
		wishes  []Wish
		preset  Default
		want    Preset
		change  func(*Policy)
		decides Intent
	}{
		{"remember", []Wish{remember}, DefaultAllow, Normal, func(p *Policy) { p.ExplicitRemember = true }, IntentRemember},
		{"remember, read only", []Wish{remember}, ReadOnly, NoSave, func(p *Policy) { p.ExplicitRemember, p.RememberTool, p.Prompt = true, Allow, PromptFull }, IntentRemember},
		{"remember, strict", []Wish{remember}, StrictDeny, NoUse, func(p *Policy) { p.ExplicitRemember, p.RememberTool = true, Allow }, IntentRemember},
		{"no save", []Wish{noSave}, DefaultAllow, NoSave, nil, IntentNoSave},
		{"no save never allows", []Wish{noSave}, StrictDeny, NoUse, nil, IntentNoSave},
		{"no use", []Wish{noUse}, DefaultAllow, NoUse, nil, IntentNoUse},
		{"forget", []Wish{target}, StrictDeny, ExplicitForget, func(p *Policy) { p.ForgetTarget = "my address" }, IntentForget},
		{"no save beats remember", []Wish{remember, noSave}, DefaultAllow, NoSave, nil, IntentNoSave},
		{"no use and no save", []Wish{noSave, noUse}, DefaultAllow, NoUse, nil, IntentNoUse},
		{"no use and remember", []Wish{remember, noUse}, DefaultAllow, NoUse, func(p *Policy) { p.ExplicitRemember, p.RememberTool = true, Allow }, IntentNoUse},
		{"forget and remember", []Wish{remember, target}, DefaultAllow, ExplicitForget, func(p *Policy) { p.ForgetTarget, p.ExplicitRemember, p.RememberTool = "my address", true, Allow }, IntentForget},
		{"forget and no save", []Wish{noSave, target}, DefaultAllow, ExplicitForget, func(p *Policy) { p.ForgetTarget = "my address" }, IntentForget},
		{"a weak wish is omitted", []Wish{remember, {Intent: IntentForget, Confidence: 0.5}}, DefaultAllow, Normal, func(p *Policy) { p.ExplicitRemember = true }, IntentRemember},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := because(tt.want.Policy(), SourceRules, "xx."+string(tt.decides), 0.9)
			want.Language = "xx"
			if tt.change != nil {
				tt.change(&want)
			}
			got := Decide(Input{}, Options{Default: tt.preset, Classify: sees(tt.wishes...)})
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for word, want := range map[Default]Preset{"": Normal, DefaultAllow: Normal, ReadOnly: NoSave, StrictDeny: NoUse, "allow": NoUse} {
		if got := word.Preset(); got != want {
			t.Errorf("%q is %q, want %q", word, got, want)
		}
	}
}
