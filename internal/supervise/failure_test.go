package supervise

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var errCause = errors.New("the cause")

func TestFailureError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		failure       Failure
		want, summary string
	}{
		{"all parts", Failure{Code: "crash", Detail: "exit 2", Err: errCause}, "crash: exit 2: the cause", "exit 2"},
		{"code alone", Failure{Code: "crash"}, "crash", ""},
		{"code and cause", Failure{Code: "crash", Err: errCause}, "crash: the cause", "the cause"},
		{"no code", Failure{Detail: "exit 2"}, "exit 2", "exit 2"},
		{"nothing", Failure{}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.failure.Error(); got != tt.want {
				t.Errorf("Error = %q, want %q", got, tt.want)
			}
			if got := tt.failure.summary(); got != tt.summary {
				t.Errorf("summary = %q, want %q", got, tt.summary)
			}
			if got := errors.Is(&tt.failure, errCause); got != (tt.failure.Err != nil) {
				t.Errorf("errors.Is = %v", got)
			}
		})
	}
}

func TestFailureOf(t *testing.T) {
	t.Parallel()
	own := &Failure{Class: ClassMemory, Code: "oom", Detail: "256 MiB"}
	for _, tt := range []struct {
		name string
		err  error
		want Failure
	}{
		{"own", own, *own},
		{"own, wrapped", fmt.Errorf("start: %w", own), *own},
		{"own without class and code", &Failure{Detail: "d"}, Failure{Class: ClassOrdinary, Code: "crash", Detail: "d"}},
		{"foreign", errCause, Failure{Class: ClassOrdinary, Code: "crash", Detail: "ended", Err: errCause}},
		{"none", nil, Failure{Class: ClassOrdinary, Code: "crash", Detail: "ended"}},
		{"typed nil", (*Failure)(nil), Failure{Class: ClassOrdinary, Code: "crash", Detail: "ended", Err: (*Failure)(nil)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := failureOf(tt.err, CodeCrash, "ended")
			if diff := cmp.Diff(*got, tt.want, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("got -, want +\n%s", diff)
			}
			if got == own {
				t.Error("the service's own value was handed on, want a copy")
			}
		})
	}
}

func TestStartFailure(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithTimeoutCause(t.Context(), -time.Second, errStartTimeout)
	defer cancel()
	noise := &Failure{Class: ClassPermanent, Code: "start_noise"}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"in time", t.Context(), errCause, CodeInternal},
		{"too late", late, context.DeadlineExceeded, CodeStartTimeout},
		{"too late, but the service knows better", late, noise, "start_noise"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := startFailure(tt.ctx, tt.err); got.Code != tt.want || !errors.Is(got, tt.err) && got.Code != noise.Code {
				t.Errorf("failure = %+v, want code %q", got, tt.want)
			}
		})
	}
}
