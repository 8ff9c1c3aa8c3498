package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestCodeOf fixes the exit codes; errors of the configuration have none of their
// own and are mistakes of the user.
func TestCodeOf(t *testing.T) {
	t.Parallel()

	cause := errors.New("cause")
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"nothing", nil, exitOK},
		{"an answer", answerNo(), exitNo},
		{"an answer with a reason", refused(cause), exitNo},
		{"usage", usagef("x: %w", cause), exitUsage},
		{"could not be done", unable(cause), exitUnable},
		{"wrapped", fmt.Errorf("y: %w", unable(cause)), exitUnable},
		{"configuration: no code of its own", cause, exitUsage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got := codeOf(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
	if !errors.Is(usagef("x: %w", cause), cause) {
		t.Error("the cause is lost")
	}
}

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
