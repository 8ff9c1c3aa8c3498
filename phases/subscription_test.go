package phases_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestOnFailure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     phases.OnFailure
		out, err string
	}{
		{"word", `"fail_closed"`, phases.OnFailure{Default: phases.FailClosed}, `"fail_closed"`, ""},
		{"empty", `{}`, phases.OnFailure{}, `""`, ""},
		{"default only", `{"default":"fallback"}`, phases.OnFailure{Default: phases.UseInstead}, `"fallback"`, ""},
		{
			"by cause", `{"timeout":"best_effort","default":"fail_closed"}`,
			phases.OnFailure{phases.FailClosed, map[phases.Cause]phases.FailureWord{phases.CauseTimeout: phases.BestEffort}},
			`{"default":"fail_closed","timeout":"best_effort"}`, "",
		},
		{
			"cause without default", `{"crash":"fallback"}`,
			phases.OnFailure{ByCause: map[phases.Cause]phases.FailureWord{phases.CauseCrash: phases.UseInstead}},
			`{"crash":"fallback"}`, "",
		},
		{"unknown word", `"fail_close"`, phases.OnFailure{}, "", `unknown failure policy "fail_close" (did you mean "fail_closed"?)`},
		{"unknown cause", `{"timeuot":"fallback"}`, phases.OnFailure{}, "", `"timeuot" is not a cause of failure (did you mean "timeout"?)`},
		{"denial is no failure", `{"denied":"fallback"}`, phases.OnFailure{}, "", `"denied" is not a cause of failure`},
		{"unknown word for a cause", `{"crash":"falback"}`, phases.OnFailure{}, "", `unknown failure policy "falback" for crash (did you mean "fallback"?)`},
		{"the first of several mistakes", `{"b":"x","a":"x"}`, phases.OnFailure{}, "", `"a" is not a cause`},
		{"number", `3`, phases.OnFailure{}, "", "want a word (fail_closed, best_effort, fallback) or {default: word, CAUSE: word}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got phases.OnFailure
			err := json.Unmarshal([]byte(tt.in), &got)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error is %v, want %s", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(got, tt.want); diff != "" || err != nil {
				t.Errorf("error %v (-got +want)\n%s", err, diff)
			}
			if out := encode(t, got); out != tt.out {
				t.Errorf("written as %s, want %s", out, tt.out)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		granted, name string
		want          bool
	}{
		{"", "a", false},
		{"a", "a", true},
		{"a", "ab", false},
		{"b, a", "a", true},
		{"memory/*", "memory/recall", true},
		{"memory/*", "memory/", true},
		{"memory/*", "memory", false},
		{"memory/*", "memories/x", false},
		{"*", "anything", true},
		{"*", "", true},
		{"a*c", "abc", false},
		{"a*c", "a*c", true},
	}
	for _, tt := range tests {
		if got := phases.Allows(list[string](tt.granted), tt.name); got != tt.want {
			t.Errorf("[%s] allows %q: %t", tt.granted, tt.name, got)
		}
	}
}
