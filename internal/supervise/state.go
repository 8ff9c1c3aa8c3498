package supervise

import (
	"fmt"
	"slices"
)

// State says where a supervised service stands. The zero value is no state: it
// marks a field that nobody has filled.
type State int

// The states of a supervised service.
const (
	// StateUndefined is the zero value and never the state of a supervisor.
	StateUndefined State = iota
	// StateDeclared is the state from New until Serve begins.
	StateDeclared
	// StateStarting covers the wait for a start slot and the start itself.
	StateStarting
	// StateReady says that the service is up and answers.
	StateReady
	// StateDegraded says that the service is up but something is wrong with it:
	// a health check was missed, or the owner called Degrade.
	StateDegraded
	// StateBackoff says that the service failed and will be started again at
	// Status.NextAttempt.
	StateBackoff
	// StateQuarantined says that the service failed and is not started again
	// until somebody calls Release.
	StateQuarantined
	// StateDraining says that the running service is being stopped on purpose.
	StateDraining
	// StateStopped is the last state: Serve has returned or is about to.
	StateStopped
)

// stateNames holds the words of the states, by their number.
//
//nolint:gochecknoglobals // an immutable table
var stateNames = [...]string{
	"undefined", "declared", "starting", "ready", "degraded",
	"backoff", "quarantined", "draining", "stopped",
}

// String returns the word of the state, for example "ready".
func (s State) String() string { return word(stateNames[:], "State", int(s)) }

// ParseState is the inverse of [State.String]. It refuses unknown words, and
// "undefined" too, since no service is ever in that state.
func ParseState(text string) (State, error) {
	n, err := parseWord(stateNames[:], "state", text)
	return State(n), err
}

// Up reports whether the service is there to be used: ready or degraded.
func (s State) Up() bool { return s == StateReady || s == StateDegraded }

// word names the n-th member of an enumeration. A number outside of it is a
// bug of the caller's, which the text makes visible instead of hiding.
func word(names []string, kind string, n int) string {
	if n < 0 || n >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, n)
	}
	return names[n]
}

// parseWord finds text among the defined members of an enumeration.
func parseWord(names []string, kind, text string) (int, error) {
	// Index 0 is the undefined member everywhere in this package.
	if n := slices.Index(names, text); n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("supervise: unknown %s %q", kind, text)
}
