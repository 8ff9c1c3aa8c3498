package turnpolicy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// TestOrder: who is asked first decides.
func TestOrder(t *testing.T) {
	t.Parallel()
	const noSave = "Don't save this."
	tests := []struct {
		name   string
		in     Input
		want   Preset
		reason string
	}{
		{"chat", Input{Mode: phases.ModeChat, Override: json.RawMessage(`"normal"`)}, NoUse, reasonChatMode},
		{"override", Input{Mode: phases.ModeAgent, Override: json.RawMessage(` "no_save" `), Default: NoUse}, NoSave, reasonOverride},
		{"bad override", Input{Override: json.RawMessage(`"nothing"`)}, NoUse, reasonBadOverride},
		{"open text", Input{Override: json.RawMessage(`"no_use`)}, NoUse, reasonBadOverride},
		{"list", Input{Override: json.RawMessage(`["normal"]`)}, NoUse, reasonBadOverride},
		{"mistyped", Input{Override: json.RawMessage(`{"forget":"allow"}`)}, NoUse, reasonBadOverride},
		{"huge", Input{Override: json.RawMessage(`{"reason_code":"` + strings.Repeat("x", maxJSON) + `"}`)}, NoUse, reasonBadOverride},
		{"nothing in it", Input{Override: json.RawMessage(`{"reason_code":"tenant"}`)}, NoUse, "tenant"},
		{"null is no override", Input{Override: json.RawMessage(" null "), Text: noSave, Default: Normal}, NoSave, "en.no_save.dont"},
		{"wish", Input{Mode: phases.ModeTask, Text: noSave, Default: Normal}, NoSave, "en.no_save.dont"},
		{"nothing wished", Input{Text: "Fix the bug.", Default: Normal}, Normal, "default.normal"},
		{"read only", Input{Default: NoSave}, NoSave, "default.no_save"},
		{"strict", Input{Default: NoUse}, NoUse, "default.no_use"},
		{"unknown default", Input{Default: "open"}, NoUse, "default.open"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(builtin(t).Decide(tt.in), tt.want.Policy().because(tt.reason)); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestGranted: what wishes come to, by the default that they meet.
func TestGranted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		wishes []Intent
		preset Preset
		want   Preset
		change func(*Policy)
	}{
		{"remember, read only", []Intent{IntentRemember}, NoSave, NoSave, func(p *Policy) { p.ExplicitRemember, p.RememberTool, p.Prompt = true, Allow, PromptFull }},
		{"remember, strict", []Intent{IntentRemember}, NoUse, NoUse, func(p *Policy) { p.ExplicitRemember, p.RememberTool = true, Allow }},
		{"no save never allows", []Intent{IntentNoSave}, NoUse, NoUse, nil},
		{"forget", []Intent{IntentForget}, NoUse, ExplicitForget, nil},
		{"no save beats remember", []Intent{IntentNoSave, IntentRemember}, Normal, NoSave, nil},
		{"no use and no save", []Intent{IntentNoUse, IntentNoSave}, Normal, NoUse, nil},
		{"no use and remember", []Intent{IntentNoUse, IntentRemember}, Normal, NoUse, func(p *Policy) { p.ExplicitRemember, p.RememberTool = true, Allow }},
		{"forget and remember", []Intent{IntentForget, IntentRemember}, Normal, ExplicitForget, func(p *Policy) { p.ExplicitRemember, p.RememberTool = true, Allow }},
		{"forget and no save", []Intent{IntentForget, IntentNoSave}, Normal, ExplicitForget, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var wishes []Wish
			for _, i := range tt.wishes {
				wishes = append(wishes, Wish{i, "xx." + string(i)})
			}
			want := tt.want.Policy().because(wishes[0].Rule)
			if tt.change != nil {
				tt.change(&want)
			}
			if diff := cmp.Diff(granted(tt.preset, wishes), want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestPresetJSON pins the JSON, which other programs read.
func TestPresetJSON(t *testing.T) {
	t.Parallel()
	const names = `{"recall":"%s","remember_tool":"%s","forget_tool":"%s","post_turn_extraction":"%s","active_recall":"%s","read_tools":"%s","prompt":"%s","explicit_remember":false,"reason_code":""}`
	const yes, no = Allow, Disabled
	for preset, want := range map[Preset]string{
		Normal:         fmt.Sprintf(names, yes, yes, yes, yes, yes, yes, "full"),
		NoSave:         fmt.Sprintf(names, yes, no, no, no, yes, yes, "read_only"),
		ExplicitForget: fmt.Sprintf(names, no, no, yes, no, no, yes, "forget_only"),
		NoUse:          fmt.Sprintf(names, no, no, no, no, no, no, "disabled"),
		"full":         fmt.Sprintf(names, no, no, no, no, no, no, "disabled"),
	} {
		got, err := json.Marshal(preset.Policy())
		back, parseErr := Parse(got)
		if string(got) != want || err != nil || parseErr != nil || back != preset.Policy() {
			t.Errorf("%s: %s, want %s; %v, %v, read as %+v", preset, got, want, err, parseErr, back)
		}
	}
}
