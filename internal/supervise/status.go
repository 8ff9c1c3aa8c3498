package supervise

import "time"

// Status is a snapshot of a supervised service.
type Status struct {
	State State
	// Since is when the service entered State.
	Since time.Time
	// Code says why it is in State, as a word for machines; empty when there is
	// nothing to explain, as with ready.
	Code string
	// Detail is the same for people, in one line.
	Detail string
	// Incarnation is the number of the current or latest start, 0 before the
	// first. Pass it to Report, Recycle, Degrade and Restore, so that what was
	// observed of one incarnation cannot hit the next.
	Incarnation uint64
	// Restarts is the number of starts after the first one that followed an end;
	// Recycled how often an incarnation took over from one that ran.
	Restarts, Recycled int
	// Failures is how many failures are counted towards quarantine, as of the
	// latest start or failure.
	Failures int
	// NextAttempt is the time of the next start while State is backoff.
	NextAttempt time.Time
	// Last is the latest failure, also after the service came up again. Nil if
	// there was none. It is shared and must not be changed.
	Last *Failure
}

// same reports whether a reader could tell s from t, apart from the time.
func (s Status) same(t Status) bool {
	s.Since, t.Since = time.Time{}, time.Time{}
	return s == t
}

// Event is one change of a supervised service: of its state, or of what is
// known about it while it stays in its state.
type Event struct {
	// Name is Options.Name.
	Name string
	// From is the state before the event.
	From State
	// Status is the snapshot after it.
	Status Status
	// Replaced is why this incarnation has taken over from one that ran; empty
	// for all other changes.
	Replaced string
}
