package supervise

import (
	"context"
	"time"
)

// Service is what a [Supervisor] starts again and again: one start at a time, and none while an earlier [Running] has
// not been stopped, except one that is being replaced or drains (see [Replacement]).
type Service interface {
	// Start brings the service up and returns once it can be used. The incarnation numbers this start, from 1;
	// numbers of starts that were called off are skipped. ctx bounds the start alone. A Start that returns an error,
	// which should be or wrap a *Failure, leaves nothing behind.
	Start(ctx context.Context, incarnation uint64) (Running, error)
}

// Running is one started service.
type Running interface {
	// Done is closed when the service has ended, by itself or by Stop.
	Done() <-chan struct{}
	// Err says why the service ended, once Done is closed: a *Failure as a rule. Nil is a crash too if the service
	// was not asked to end.
	Err() error
	// Stop ends the service and frees all that belongs to it. It is called exactly once, also after Done; when ctx
	// ends, Stop must use force and return.
	Stop(ctx context.Context) error
}

// State says where a supervised service stands. The zero value is not a state.
type State string

// The states of a supervised service.
const (
	StateDeclared State = "declared" // the state from New until Serve begins
	StateStarting State = "starting" // StateStarting covers the wait for a start slot and the start itself
	StateReady    State = "ready"    // StateReady says that the service is up and answers
	// StateDegraded says that the service is up but missed a health check, cannot be replaced, or was called degraded
	// by its owner.
	StateDegraded State = "degraded"
	// StateBackoff says that the service failed and is started again at Status.NextAttempt.
	StateBackoff State = "backoff"
	// StateQuarantined says that the service failed and is started again only by Release.
	StateQuarantined State = "quarantined"
	StateDraining    State = "draining" // StateDraining says that the running service is being stopped on purpose
	StateStopped     State = "stopped"  // the last state
)

// Up reports whether the service can be used: ready or degraded.
func (s State) Up() bool { return s == StateReady || s == StateDegraded }

// Status is a snapshot of a supervised service.
type Status struct {
	State State
	Since time.Time // when the service entered State
	// Code says why it is in State, as a word for machines; Detail is the same for people. Both are empty if there is
	// nothing to explain.
	Code, Detail string
	Incarnation  uint64 // the number of the current or latest start, 0 before the first
	// Restarts counts the starts that followed an end, Recycled the incarnations that took over from one that ran.
	Restarts, Recycled int
	Failures           int       // how many failures are counted towards quarantine
	NextAttempt        time.Time // the time of the next start while State is backoff
	Last               *Failure  // the latest failure, nil if there was none. It must not be changed.
}

// same reports whether s and t differ at most in Since.
func (s Status) same(t Status) bool {
	s.Since, t.Since = time.Time{}, time.Time{}
	return s == t
}

// Event is one change of a supervised service.
type Event struct {
	Name     string // Options.Name
	From     State  // the state before the event, Status the snapshot after it
	Status   Status
	Replaced string // why this incarnation has taken over from one that ran; else empty
}
