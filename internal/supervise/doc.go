// Package supervise keeps one service running: it starts it, watches it, and
// starts it again when it ends, at a pace that harms neither the service nor
// the host. Beside that it holds the circuit breaker that stands before single
// calls.
//
// It knows nothing of plugins, phases or processes. What is supervised is
// anything that can be started, can end, and can be stopped: see [Service] and
// [Running].
//
// # The parts
//
//   - [Policy] is the pure part: given what has failed so far, what failed now
//     and the time, it says when to try again, or that enough is enough. It has
//     no clock, no timer and no goroutine.
//   - [Supervisor] is the shell around it: the loop that starts, waits, checks
//     health and stops, and that tells its owner each change of state.
//   - [Gate] keeps many supervisors that share a host from all starting at the
//     same moment.
//   - [Breaker] refuses calls at once after too many of them failed. It is
//     independent of the supervisor: a service may be up and one kind of call
//     to it still be broken.
//
// # States
//
//	          +-------- recycle, via draining --------+
//	          v                                       |
//	declared -> starting -> ready <-> degraded -------+
//	             ^   |        |          |
//	             |   +--------+----------+--- failure
//	             |                             |
//	             +------- backoff <------------+-----> quarantined
//	             ^                                         |
//	             +---------------- release ----------------+
//
// A service that runs well can be replaced by a new start of it without leaving
// ready: see [Replacement].
//
// Each state leads to stopped when the context of [Supervisor.Serve] ends,
// through draining if there is something to stop.
//
// # Time
//
// The supervisor reads the clock and sets timers through package time and only
// ever subtracts readings that carry Go's monotonic clock, so a wall clock that
// is set forwards or backwards changes nothing. Tests run it inside
// testing/synctest. The random numbers for jitter are injected.
//
// Stability: internal.
package supervise
