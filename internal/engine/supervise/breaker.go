package supervise

import (
	"cmp"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of [BreakerOptions].
const (
	DefaultBreakerFailures = 5
	DefaultBreakerOpenFor  = 10 * time.Second
)

// ErrBreakerOpen is returned by [Breaker.Allow] when the call must not be made: the breaker is open, or half open
// with its one probe under way.
var ErrBreakerOpen = errors.New("supervise: breaker is open")

// BreakerState says whether a [Breaker] lets calls pass.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed   BreakerState = "closed"    // calls pass
	BreakerOpen     BreakerState = "open"      // calls are refused
	BreakerHalfOpen BreakerState = "half_open" // one call at a time passes, as a probe
)

// Outcome is how a call that a [Breaker] let pass has ended. Unknown outcomes are neutral.
type Outcome string

// The outcomes of a call.
const (
	// OutcomeNeutral says nothing about the health of the target. A probe that ends so is given to the next call.
	OutcomeNeutral Outcome = "neutral"
	// OutcomeSuccess ends a row of failures; as a probe it closes the breaker.
	OutcomeSuccess Outcome = "success"
	OutcomeFailure Outcome = "failure" // OutcomeFailure counts; as a probe it opens the breaker again
)

// BreakerOptions are the settings of a [Breaker]. Zero fields have the defaults.
type BreakerOptions struct {
	Failures int           // Failures in a row open the breaker
	OpenFor  time.Duration // how long it stays open before a probe is let through
	// OnChange is called for each change of state, in order and one at a time, with no lock held. The change from
	// open to half open happens with the first Allow or State after OpenFor has passed. May be nil.
	OnChange func(from, to BreakerState)
}

// Breaker refuses calls to a target that has failed too often in a row. Create it with [NewBreaker]; it is safe for
// concurrent use.
type Breaker struct {
	o BreakerOptions

	// steady is the ticket for calls while the breaker is closed without a failure, which then take no lock; 0
	// otherwise.
	steady atomic.Uint64

	mu       sync.Mutex
	state    BreakerState
	failures int
	// openUntil is when the open breaker becomes half open; probing says that its probe is under way then.
	openUntil  time.Time
	probing    bool
	epoch      Ticket          // epoch numbers the states and resets from 1: outcomes of calls from before are ignored
	changes    []breakerChange // changes wait for OnChange, which one goroutine at a time calls
	delivering bool
}

// Ticket identifies the state in which a call was allowed.
type Ticket uint64

type breakerChange struct{ from, to BreakerState }

// NewBreaker returns a closed breaker.
func NewBreaker(o BreakerOptions) *Breaker {
	o.Failures = cmp.Or(max(o.Failures, 0), DefaultBreakerFailures)
	o.OpenFor = cmp.Or(max(o.OpenFor, 0), DefaultBreakerOpenFor)
	b := &Breaker{o: o, state: BreakerClosed, epoch: 1}
	b.steady.Store(1)
	return b
}

// Reset closes the breaker and forgets its failures; outcomes of calls that are under way do not count any more. It
// reports whether the breaker was not closed.
func (b *Breaker) Reset() bool {
	b.lock()
	defer b.unlock()
	was := b.state
	b.enter(BreakerClosed)
	return was != BreakerClosed
}

// Allow asks whether a call may be made now. If so, the caller must pass the ticket and the outcome to Report, once:
// a probe that is never reported keeps the breaker half open for ever. Otherwise it returns [ErrBreakerOpen].
func (b *Breaker) Allow() (Ticket, error) {
	if t := b.steady.Load(); t != 0 {
		return Ticket(t), nil
	}
	b.lock()
	defer b.unlock()
	if b.state == BreakerOpen || b.probing {
		return 0, ErrBreakerOpen
	}
	b.probing = b.state == BreakerHalfOpen
	return b.epoch, nil
}

// Report counts the outcome of a call that Allow let pass.
func (b *Breaker) Report(t Ticket, o Outcome) {
	if o != OutcomeFailure && b.steady.Load() == uint64(t) {
		return // there is no failure to forget
	}
	b.lock()
	defer b.unlock()
	if t != b.epoch {
		return
	}
	if b.probing {
		b.probing = false
		b.epoch++ // a second report does not count
	}
	switch o {
	case OutcomeSuccess:
		b.failures = 0
		if b.state == BreakerClosed {
			b.steady.Store(uint64(b.epoch))
		}
		if b.state == BreakerHalfOpen {
			b.enter(BreakerClosed)
		}
	case OutcomeFailure:
		b.failures++
		b.steady.Store(0)
		if b.state == BreakerHalfOpen || b.failures >= b.o.Failures {
			b.openUntil = time.Now().Add(b.o.OpenFor)
			b.enter(BreakerOpen)
		}
	case OutcomeNeutral:
	}
}

// State returns the state as of now.
func (b *Breaker) State() BreakerState {
	if b.steady.Load() != 0 {
		return BreakerClosed
	}
	b.lock()
	defer b.unlock()
	return b.state
}

// enter begins a state; the caller holds the lock.
func (b *Breaker) enter(s BreakerState) {
	if s != b.state && b.o.OnChange != nil {
		b.changes = append(b.changes, breakerChange{b.state, s})
	}
	b.state, b.failures, b.probing = s, 0, false
	b.epoch++
	b.steady.Store(0)
	if s == BreakerClosed {
		b.steady.Store(uint64(b.epoch))
	}
}

// lock locks the breaker, and makes it half open when that is due.
func (b *Breaker) lock() {
	b.mu.Lock()
	if b.state == BreakerOpen && time.Now().After(b.openUntil) {
		b.enter(BreakerHalfOpen)
	}
}

// unlock unlocks the breaker and calls OnChange, unless another goroutine is doing so: that one delivers the new
// changes too, in order.
func (b *Breaker) unlock() {
	if b.delivering {
		b.mu.Unlock()
		return
	}
	b.delivering = true
	for len(b.changes) > 0 {
		c := b.changes[0]
		b.changes = b.changes[1:]
		b.mu.Unlock()
		b.o.OnChange(c.from, c.to)
		b.mu.Lock()
	}
	b.delivering = false
	b.mu.Unlock()
}
