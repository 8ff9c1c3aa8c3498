package supervise

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pass asks for a call that must be allowed.
func pass(t *testing.T, b *Breaker) func(Outcome) {
	t.Helper()
	ticket, err := b.Allow()
	if err != nil {
		t.Fatalf("Allow = %v, want a call", err)
	}
	return func(o Outcome) { b.Report(ticket, o) }
}

// refused asks for a call that must not be allowed.
func refused(t *testing.T, b *Breaker) {
	t.Helper()
	if _, err := b.Allow(); !errors.Is(err, ErrBreakerOpen) {
		t.Fatalf("Allow = %v, want ErrBreakerOpen", err)
	}
}

// outcomes makes one call for each letter: s, f, n.
func outcomes(t *testing.T, b *Breaker, letters string) {
	t.Helper()
	for _, l := range letters {
		pass(t, b)(map[rune]Outcome{'s': OutcomeSuccess, 'f': OutcomeFailure, 'n': OutcomeNeutral}[l])
	}
}

func TestBreakerCounting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options BreakerOptions
		calls   string
		want    BreakerState
	}{
		{"four failures", BreakerOptions{}, "ffff", BreakerClosed},
		{"five failures", BreakerOptions{}, "fffff", BreakerOpen},
		{"a success between", BreakerOptions{}, "ffffsffff", BreakerClosed},
		{"neutral does not end a row", BreakerOptions{}, "ffnffnf", BreakerOpen},
		{"limit of one", BreakerOptions{Failures: 1}, "f", BreakerOpen},
		{"negative limit is the default", BreakerOptions{Failures: -1}, "ffff", BreakerClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := NewBreaker(tt.options)
			outcomes(t, b, tt.calls)
			if got := b.State(); got != tt.want {
				t.Errorf("state = %v, want %v", got, tt.want)
			}
		})
	}
}

// openBreaker returns a breaker that has just opened.
func openBreaker(t *testing.T, o BreakerOptions) *Breaker {
	t.Helper()
	b := NewBreaker(o)
	outcomes(t, b, "fffff")
	refused(t, b)
	return b
}

func TestBreakerProbe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		outcome Outcome
		want    BreakerState
	}{
		{"success closes", OutcomeSuccess, BreakerClosed},
		{"failure opens", OutcomeFailure, BreakerOpen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := openBreaker(t, BreakerOptions{})
				time.Sleep(DefaultBreakerOpenFor)
				refused(t, b) // at the very end it is still open
				time.Sleep(1)
				probe := pass(t, b)
				refused(t, b) // one probe, not two
				probe(tt.outcome)
				if got := b.State(); got != tt.want {
					t.Errorf("state = %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestBreakerNeutralProbe checks that a neutral probe gives its place to exactly
// one other, however often it happens and is reported.
func TestBreakerNeutralProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openBreaker(t, BreakerOptions{OpenFor: time.Second})
		time.Sleep(time.Second + 1)
		for range 100 {
			probe := pass(t, b)
			refused(t, b)
			probe(OutcomeNeutral)
			probe(OutcomeNeutral) // must not make room for a second one
			probe(OutcomeSuccess) // must not close it
		}
		last := pass(t, b)
		refused(t, b)
		last(OutcomeSuccess)
		outcomes(t, b, "ffff")
		if got := b.State(); got != BreakerClosed {
			t.Errorf("state = %v, want closed: old failures must not count on", got)
		}
	})
}

// TestBreakerLateReport ends a call that began before the breaker opened while
// it is half open: it is no probe and decides nothing.
func TestBreakerLateReport(t *testing.T) {
	t.Parallel()
	for _, o := range []Outcome{OutcomeSuccess, OutcomeFailure, OutcomeNeutral} {
		t.Run(string(o), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := NewBreaker(BreakerOptions{})
				old := pass(t, b)
				outcomes(t, b, "fffff")
				time.Sleep(DefaultBreakerOpenFor + 1)
				probe := pass(t, b)
				old(o)
				if got := b.State(); got != BreakerHalfOpen {
					t.Errorf("state = %v, want half_open", got)
				}
				refused(t, b)
				probe(OutcomeSuccess)
			})
		})
	}
}

// TestBreakerReset: an open breaker lets calls pass at once, forgets what has failed,
// and takes no outcome of calls from before; the change is told once.
func TestBreakerReset(t *testing.T) {
	t.Parallel()

	var told []string
	b := NewBreaker(BreakerOptions{OnChange: func(from, to BreakerState) { told = append(told, fmt.Sprint(from, " ", to)) }})
	if b.Reset() {
		t.Error("a closed breaker was reset")
	}
	late := []func(Outcome){pass(t, b), pass(t, b)}
	outcomes(t, b, "fffff")
	refused(t, b)
	if !b.Reset() || b.State() != BreakerClosed {
		t.Errorf("the breaker is %v", b.State())
	}
	outcomes(t, b, "ffff")
	for _, done := range late {
		done(OutcomeFailure)
	}
	if b.State() != BreakerClosed {
		t.Error("calls from before count")
	}
	outcomes(t, b, "f")
	if diff := cmp.Diff([]string{"closed open", "open closed", "closed open"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
