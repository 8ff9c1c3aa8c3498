package supervise

import "context"

// Service is what a [Supervisor] starts again and again. The supervisor makes one
// start at a time, and none while an earlier [Running] of it has not been stopped,
// but for one: that which it replaces, or which has been replaced and drains
// (see [Replacement]).
type Service interface {
	// Start brings the service up and returns once it can be used. The
	// incarnation names this start; it begins at 1 and grows each time. (A
	// number is left out when a start was called off before its slot came.)
	//
	// ctx bounds the start alone and must not be kept. When it ends, Start must
	// return soon; its cause says why. Start that returns an error leaves
	// nothing behind. The error should be or wrap a *Failure.
	Start(ctx context.Context, incarnation uint64) (Running, error)
}

// Running is one started service.
type Running interface {
	// Done is closed when the service has ended, by itself or by Stop.
	Done() <-chan struct{}
	// Err says why the service ended, once Done is closed. It should be or wrap
	// a *Failure. Nil is a crash too if nobody had asked the service to end.
	Err() error
	// Stop ends the service and frees all that belongs to it. The supervisor
	// calls it exactly once for each Running, also after Done, and waits for
	// it: when ctx ends, Stop must do the rest by force and return.
	Stop(ctx context.Context) error
}
