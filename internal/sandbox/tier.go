package sandbox

import "fmt"

// Tier is how strongly a process is confined. The zero value is T0; a greater
// tier has all that a smaller one has.
type Tier uint8

// The tiers; see the package comment.
const (
	T0 Tier = iota
	T1
	T2
)

// String returns the tier as operators write it.
func (t Tier) String() string {
	if t > T2 {
		return fmt.Sprintf("undefined tier %d", uint8(t))
	}
	return [...]string{"T0", "T1", "T2"}[t]
}

// ParseTier is the inverse of String; "" is T0.
func ParseTier(s string) (Tier, error) {
	for t := T0; t <= T2; t++ {
		if s == t.String() {
			return t, nil
		}
	}
	if s == "" {
		return T0, nil
	}
	return T0, fmt.Errorf("sandbox tier %q is none of T0, T1, T2", s)
}

// UnreachableError says that a tier was asked for and that this system does
// not give it.
type UnreachableError struct {
	Tier Tier
	// Why names what is missing, for people.
	Why string
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the sandbox tier %s is not reachable here: %s", e.Tier, e.Why)
}
