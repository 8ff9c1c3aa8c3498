package main

import (
	"errors"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestRemedies checks that every failure says what to do, and where it was.
func TestRemedies(t *testing.T) {
	t.Parallel()

	for _, code := range append(phases.FailureCauses(), phases.CauseDenied, codeAsk) {
		err := &phases.Error{Code: code, Phase: phases.ToolPreCall, Subscription: "rules.guard", Message: "no"}
		got := withHint(err)
		if want := "tool.pre_call: rules.guard: no (" + string(code) + "); "; len(got.Error()) < len(want)+10 || got.Error()[:len(want)] != want {
			t.Errorf("%s: %q", code, got)
		}
		if !errors.Is(got, err) {
			t.Errorf("%s: the error is lost", code)
		}
	}
}
