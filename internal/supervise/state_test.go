package supervise

import (
	"fmt"
	"strings"
	"testing"
)

// enum is what the tests need of an enumeration of this package.
type enum struct {
	name  string
	words []string // by number, from 0
	text  func(n int) string
	parse func(text string) (int, error)
}

// enums lists every enumeration that can be parsed.
func enums() []enum {
	return []enum{
		{
			"state",
			[]string{"undefined", "declared", "starting", "ready", "degraded", "backoff", "quarantined", "draining", "stopped"},
			func(n int) string { return State(n).String() },
			func(text string) (int, error) { s, err := ParseState(text); return int(s), err },
		},
		{
			"class",
			[]string{"undefined", "ordinary", "permanent", "resource", "memory"},
			func(n int) string { return Class(n).String() },
			func(text string) (int, error) { c, err := ParseClass(text); return int(c), err },
		},
		{
			"action",
			[]string{"undefined", "retry", "quarantine"},
			func(n int) string { return Action(n).String() },
			func(text string) (int, error) { a, err := ParseAction(text); return int(a), err },
		},
		{
			"breaker state",
			[]string{"undefined", "closed", "open", "half_open"},
			func(n int) string { return BreakerState(n).String() },
			func(text string) (int, error) { s, err := ParseBreakerState(text); return int(s), err },
		},
	}
}

func TestEnumerations(t *testing.T) {
	t.Parallel()
	for _, e := range enums() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			for n, want := range e.words {
				if got := e.text(n); got != want {
					t.Errorf("String of %d = %q, want %q", n, got, want)
				}
				got, err := e.parse(want)
				if defined := n > 0; defined && (err != nil || got != n) {
					t.Errorf("parse %q = %d, %v, want %d", want, got, err, n)
				} else if !defined && err == nil {
					t.Errorf("parse %q succeeded, want an error", want)
				}
			}
			for _, n := range []int{-1, len(e.words)} {
				if got := e.text(n); !strings.HasSuffix(got, fmt.Sprintf("(%d)", n)) {
					t.Errorf("String of %d = %q, want the number in it", n, got)
				}
			}
		})
	}
}

func TestOutcomeString(t *testing.T) {
	t.Parallel()
	for o, want := range map[Outcome]string{
		OutcomeNeutral: "neutral", OutcomeSuccess: "success", OutcomeFailure: "failure", 7: "Outcome(7)",
	} {
		if got := o.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}

func TestStateUp(t *testing.T) {
	t.Parallel()
	up := map[State]bool{StateReady: true, StateDegraded: true}
	for s := StateUndefined; s <= StateStopped; s++ {
		if got, want := s.Up(), up[s]; got != want {
			t.Errorf("%v.Up() = %v, want %v", s, got, want)
		}
	}
}

// FuzzParse checks that what is parsed prints as the same word, and that errors
// name the word and come with the zero value.
func FuzzParse(f *testing.F) {
	for _, e := range enums() {
		for _, w := range e.words {
			f.Add(w)
		}
	}
	f.Add("READY")
	f.Add("ready ")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range enums() {
			n, err := e.parse(text)
			switch {
			case err == nil && e.text(n) != text:
				t.Errorf("%s: %q became %q", e.name, text, e.text(n))
			case err != nil && n != 0:
				t.Errorf("%s: %q gave %d beside an error", e.name, text, n)
			case err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", text)):
				t.Errorf("%s: error %q does not name %q", e.name, err, text)
			}
		}
	})
}
