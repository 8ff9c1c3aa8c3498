package phases_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// TestVisibility holds the rule, for a plugin's text that its author calls safe and
// for one that nobody does: who reads it.
func TestVisibility(t *testing.T) {
	t.Parallel()
	tests := []struct {
		visibility            phases.Visibility
		user, audit, operator bool
	}{
		{"", false, false, false},
		{phases.VisibilityInternal, false, false, false},
		{phases.VisibilityDebug, false, false, true},
		{phases.VisibilityUserAudit, false, true, true},
		{phases.VisibilityUserVisible, true, true, true},
		{"made up", false, false, false},
	}
	for _, tt := range tests {
		t.Run(string(tt.visibility), func(t *testing.T) {
			t.Parallel()
			wants := map[phases.Audience]bool{phases.AudienceUser: tt.user, phases.AudienceAudit: tt.audit, phases.AudienceOperator: tt.operator}
			for audience, want := range wants {
				for _, safe := range []bool{true, false} {
					words := "the words"
					d := phases.Diagnostic{Code: "c", Message: words, SafeForUser: safe}.Remark(tt.visibility)
					e := &phases.Error{Code: "c", Message: "neutral", Detail: words, SafeForUser: safe, Visibility: tt.visibility}
					a := phases.Applied{Value: &phases.ManifestDiagnostic{Code: "c", Message: words, SafeForUser: safe}}
					a.Conceal(tt.visibility)
					value, _ := a.For(audience).Value.(*phases.ManifestDiagnostic)
					for what, got := range map[string]string{"diagnostic": d.For(audience).Message, "error": e.For(audience).Message, "contribution": value.Message} {
						if (got == words) != (want && safe) {
							t.Errorf("%s: audience %d, safe %v: %q", what, audience, safe, got)
						}
					}
					if d.For(audience).Detail != "" || e.For(audience).Detail != "" || a.For(audience).Whole != nil {
						t.Errorf("audience %d: words are left behind", audience)
					}
				}
			}
		})
	}
}

// TestRemark: what a plugin says becomes the host's: a code that is a word, a
// neutral message, and the words apart from both.
func TestRemark(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   phases.Diagnostic
		want phases.Diagnostic
	}{
		{
			"words",
			phases.Diagnostic{Code: "slow_disk", Message: "m", Severity: "warning"},
			phases.Diagnostic{Code: "slow_disk", Message: phases.HiddenRemark, Detail: "m", Severity: "warning"},
		},
		{"no words", phases.Diagnostic{Code: "slow.disk", Severity: "loud"}, phases.Diagnostic{Code: "slow.disk", Severity: "info"}},
		{
			"a sentence for a code",
			phases.Diagnostic{Code: "sk-CANARY 1", Message: "m", SafeForUser: true},
			phases.Diagnostic{Code: phases.CodeInvalidCode, Message: phases.HiddenRemark, Detail: "sk-CANARY 1; m", Severity: "info"},
		},
		{
			"no code",
			phases.Diagnostic{Message: "m"},
			phases.Diagnostic{Code: phases.CodeInvalidCode, Message: phases.HiddenRemark, Detail: "m", Severity: "info"},
		},
		{"claims", phases.Diagnostic{Code: "c", Cause: "oom", Slot: "a b", OtherSubscription: "x.y"}, phases.Diagnostic{Code: "c", Severity: "info"}},
		{"a slot", phases.Diagnostic{Code: "c", Slot: "house"}, phases.Diagnostic{Code: "c", Severity: "info"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.in.Remark(""), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

// TestWhole: what an error wraps keeps its words for the log, and no text shows
// them, however it is wrapped or encoded.
func TestWhole(t *testing.T) {
	t.Parallel()
	const words = "sk-CANARY"
	inner := &phases.Error{Code: phases.CausePluginError, Message: "the plugin failed", Detail: words}
	tests := map[string]error{
		"itself":  inner,
		"wrapped": fmt.Errorf("a: %w", inner),
		"joined":  errors.Join(errors.New("other"), fmt.Errorf("b: %w", inner)),
		"coded":   phases.Errorf(phases.CauseCrash, "c: %w", inner),
		"several": phases.Errorf(phases.CauseCrash, "d: %w and %w", inner, inner),
		"words":   phases.WithDetail("e", words, nil),
		"beneath": fmt.Errorf("f: %w", phases.WithDetail("g", "more", inner)),
	}
	for name, err := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(err.Error(), words) {
				t.Errorf("its text is %q", err)
			}
			if whole := phases.Whole(err); strings.Count(whole, words) != 1 || !strings.HasPrefix(whole, err.Error()) {
				t.Errorf("the whole is %q", whole)
			}
		})
	}
	data, err := json.Marshal(inner)
	if err != nil || bytes.Contains(data, []byte(words)) {
		t.Errorf("as JSON %s, %v", data, err)
	}
	if phases.Whole(nil) != "" || phases.DetailOf(errors.New("x")) != "" {
		t.Error("nothing is something")
	}
}
