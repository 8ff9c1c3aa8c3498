package phases_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	want := list[phases.Cause](`timeout, crash, oom, unavailable, quarantined, breaker_open, budget_exhausted, overloaded, oversize_request,
		oversize_reply, session_reset, invalid_reply, forbidden, conflict, condition, plugin_error, version_mismatch,
		checksum_mismatch, unsafe_path, description_changed, start_timeout, start_noise, invalid_frame, exec_failed, required_missing, internal`)
	got := phases.FailureCauses()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	for _, c := range []phases.Cause{phases.CauseDenied, phases.CauseCancelled, "", phases.CodeNotAllowed} {
		if c.Failure() {
			t.Errorf("%q counts as a failure", c)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  *phases.Error
		want string
		is   []error
	}{
		{"code only", &phases.Error{Code: phases.CauseTimeout}, "timeout", nil},
		{
			"everything", &phases.Error{Code: phases.CausePluginError, Phase: phases.PrePolicy, Subscription: "p.h", Message: "no luck"},
			"turn.pre_policy: p.h: no luck (plugin_error)", nil,
		},
		{"subscription only", &phases.Error{Code: phases.CauseOOM, Subscription: "p.h"}, "p.h: oom", nil},
		{"formatted", phases.Errorf(phases.CauseCrash, "exit %d", 3), "exit 3 (crash)", nil},
		{"wrapped", phases.Errorf(phases.CauseCrash, "read: %w", io.EOF), "read: EOF (crash)", []error{io.EOF}},
		{"wrapped twice", phases.Errorf(phases.CauseCrash, "%w and %w", io.EOF, context.Canceled), "EOF and context canceled (crash)", []error{io.EOF, context.Canceled}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.err.Error() != tt.want {
				t.Errorf("got %q, want %q", tt.err, tt.want)
			}
			for _, is := range tt.is {
				if !errors.Is(tt.err, is) {
					t.Errorf("%q does not wrap %v", tt.err, is)
				}
			}
			if len(tt.is) == 0 && tt.err.Unwrap() != nil {
				t.Errorf("wraps %v", tt.err.Unwrap())
			}
		})
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	inner := phases.Errorf(phases.CauseOverloaded, "busy")
	for _, tt := range []struct {
		err  error
		want phases.Cause
	}{
		{nil, ""},
		{io.EOF, phases.CauseInternal},
		{inner, phases.CauseOverloaded},
		{fmt.Errorf("a: %w", inner), phases.CauseOverloaded},
		{phases.Errorf(phases.CauseTimeout, "late: %w", inner), phases.CauseTimeout},
	} {
		if got := phases.CodeOf(tt.err); got != tt.want {
			t.Errorf("%v has the code %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestConfigError(t *testing.T) {
	t.Parallel()
	if got := (&phases.ConfigError{Message: "no"}).Error(); got != "no" {
		t.Errorf("got %q", got)
	}
	if got := (&phases.ConfigError{Pointer: "/a/0", Message: "no"}).Error(); got != "/a/0: no" {
		t.Errorf("got %q", got)
	}
}

func TestRunStateCompleted(t *testing.T) {
	t.Parallel()
	for _, s := range list[phases.RunState]("succeeded, denied, cached") {
		if !s.Completed() {
			t.Errorf("%s does not satisfy require", s)
		}
	}
	for _, s := range list[phases.RunState]("failed, timed_out, cancelled, filtered, disabled, unavailable, budget_exhausted, shadowed, queued") {
		if s.Completed() {
			t.Errorf("%s satisfies require", s)
		}
	}
}

func TestVerdictStrength(t *testing.T) {
	t.Parallel()
	order := []phases.Verdict{"", phases.VerdictAllow, phases.VerdictAsk, phases.VerdictDeny}
	for i, v := range order {
		if v.Strength() != i {
			t.Errorf("%q has the strength %d, want %d", v, v.Strength(), i)
		}
	}
	if phases.Verdict("Deny").Strength() != 0 {
		t.Error("an unknown word is a verdict")
	}
}
