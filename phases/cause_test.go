package phases_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

func TestError(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  *phases.Error
		want string
		is   []error
	}{
		{
			"everything", &phases.Error{Code: phases.CausePluginError, Phase: phases.PrePolicy, Subscription: "p.h", Message: "no luck"},
			"turn.pre_policy: p.h: no luck (plugin_error)", nil,
		},
		{"subscription only", &phases.Error{Code: phases.CauseOOM, Subscription: "p.h"}, "p.h: oom", nil},
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
