package supervise

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// The defaults of [BreakerOptions].
const (
	DefaultBreakerFailures = 5
	DefaultBreakerOpenFor  = 10 * time.Second
)

// ErrBreakerOpen is returned by [Breaker.Allow] when the call must not be made:
// the breaker is open, or half open and its one probe is on the way.
var ErrBreakerOpen = errors.New("supervise: breaker is open")

// BreakerState says whether a [Breaker] lets calls pass.
type BreakerState int

// The states of a breaker.
const (
	// BreakerUndefined is the zero value and never the state of a breaker.
	BreakerUndefined BreakerState = iota
	// BreakerClosed: calls pass.
	BreakerClosed
	// BreakerOpen: calls are refused.
	BreakerOpen
	// BreakerHalfOpen: one call at a time passes, as a probe.
	BreakerHalfOpen
)

// breakerNames holds the words of the breaker's states, by their number.
//
//nolint:gochecknoglobals // an immutable table
var breakerNames = [...]string{"undefined", "closed", "open", "half_open"}

// String returns the word of the state: closed, open or half_open.
func (s BreakerState) String() string { return word(breakerNames[:], "BreakerState", int(s)) }

// ParseBreakerState is the inverse of [BreakerState.String]. It refuses unknown
// words and "undefined".
func ParseBreakerState(text string) (BreakerState, error) {
	n, err := parseWord(breakerNames[:], "breaker state", text)
	return BreakerState(n), err
}

// Outcome is how a call that a [Breaker] let pass has ended, as far as the
// breaker is concerned.
type Outcome int

// The outcomes of a call.
const (
	// OutcomeNeutral is the zero value: the call says nothing about the health
	// of its target (denied, cancelled by the caller, filtered out). It neither
	// counts nor ends a row of failures, and a probe that ends so is given to
	// the next call.
	OutcomeNeutral Outcome = iota
	// OutcomeSuccess ends a row of failures; as a probe it closes the breaker.
	OutcomeSuccess
	// OutcomeFailure counts; as a probe it opens the breaker again.
	OutcomeFailure
)

// outcomeNames holds the words of the outcomes, by their number.
//
//nolint:gochecknoglobals // an immutable table
var outcomeNames = [...]string{"neutral", "success", "failure"}

// String returns the word of the outcome.
func (o Outcome) String() string { return word(outcomeNames[:], "Outcome", int(o)) }

// How outcomes travel through gobreaker, which knows only errors.
var (
	errNeutral = errors.New("supervise: neutral outcome")
	errCounted = errors.New("supervise: counted failure")
)

// asError translates the outcome for gobreaker. An unknown outcome is neutral:
// a mistake of the caller's must neither open nor close anything.
func (o Outcome) asError() error {
	switch o {
	case OutcomeSuccess:
		return nil
	case OutcomeFailure:
		return errCounted
	case OutcomeNeutral:
	}
	return errNeutral
}

// BreakerOptions are the settings of a [Breaker]. The zero value has the
// defaults.
type BreakerOptions struct {
	// Failures in a row that open the breaker; zero or less means
	// DefaultBreakerFailures.
	Failures int
	// OpenFor is how long it stays open before a probe is let through; zero or
	// less means DefaultBreakerOpenFor.
	OpenFor time.Duration
	// OnChange is told each change of state, in order and one at a time, by
	// whichever goroutine is using the breaker. No lock is held, so it may call
	// the breaker; it should not block. May be nil.
	//
	// A breaker has no timer: the change from open to half open happens with
	// the first Allow or State after OpenFor has passed.
	OnChange func(from, to BreakerState)
}

// Breaker refuses calls to a target that has failed too often in a row. Create
// it with [NewBreaker]; it is safe for concurrent use.
//
// It wraps gobreaker for three reasons: outcomes that are neither success nor
// failure become a value that cannot be forgotten, the report of an outcome is
// safe to repeat, and OnChange runs outside of the lock.
type Breaker struct {
	inner    atomic.Pointer[gobreaker.TwoStepCircuitBreaker[struct{}]]
	settings gobreaker.Settings
	onChange func(from, to BreakerState)

	// waiting is the length of changes, readable without the lock: nearly every
	// call changes nothing and should not pay for a second lock.
	waiting atomic.Int32

	mu         sync.Mutex
	changes    []breakerChange
	delivering bool
}

// breakerChange is one change of state that OnChange has not been told yet.
type breakerChange struct{ from, to BreakerState }

// NewBreaker returns a closed breaker.
func NewBreaker(o BreakerOptions) *Breaker {
	if o.Failures <= 0 {
		o.Failures = DefaultBreakerFailures
	}
	if o.OpenFor <= 0 {
		o.OpenFor = DefaultBreakerOpenFor
	}
	b := &Breaker{onChange: o.OnChange}
	b.settings = gobreaker.Settings{
		MaxRequests: 1, // one probe
		Timeout:     o.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return int64(c.ConsecutiveFailures) >= int64(o.Failures)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errNeutral) },
	}
	b.inner.Store(b.fresh())
	return b
}

// fresh is a closed breaker without a past. What is told of it counts as long as
// no other has taken its place.
func (b *Breaker) fresh() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	settings := b.settings
	var own *gobreaker.TwoStepCircuitBreaker[struct{}]
	if b.onChange != nil {
		settings.OnStateChange = func(_ string, from, to gobreaker.State) {
			if b.inner.Load() == own {
				b.note(breakerState(from), breakerState(to))
			}
		}
	}
	own = gobreaker.NewTwoStepCircuitBreaker[struct{}](settings)
	return own
}

// Reset closes the breaker and forgets what has failed; outcomes of calls that are
// on their way count no more. It reports whether the breaker was not closed.
func (b *Breaker) Reset() bool {
	old := b.inner.Swap(b.fresh())
	was := breakerState(old.State())
	if was == BreakerClosed {
		return false
	}
	if b.onChange != nil {
		b.note(was, BreakerClosed)
		b.deliver()
	}
	return true
}

// Allow asks whether a call may be made now. If so, it returns done, which the
// caller must call when the call has ended, whatever became of it: a probe that
// is never reported would keep the breaker half open for ever. Only the first
// report of a call counts, and one that comes after the breaker has changed its
// state meanwhile is ignored. If not, it returns [ErrBreakerOpen] and no done.
func (b *Breaker) Allow() (done func(Outcome), err error) {
	report, err := b.inner.Load().Allow()
	b.deliver()
	if err != nil {
		// Both refusals of gobreaker mean the same to the caller, and a fixed
		// error costs nothing to return.
		return nil, ErrBreakerOpen
	}
	var reported atomic.Bool
	return func(o Outcome) {
		// A neutral probe that is reported twice would make room for two.
		if reported.Swap(true) {
			return
		}
		report(o.asError())
		b.deliver()
	}, nil
}

// State returns the state as of now.
func (b *Breaker) State() BreakerState {
	s := breakerState(b.inner.Load().State())
	b.deliver()
	return s
}

// breakerState translates gobreaker's state, whose words differ from ours.
func breakerState(s gobreaker.State) BreakerState {
	switch s {
	case gobreaker.StateClosed:
		return BreakerClosed
	case gobreaker.StateOpen:
		return BreakerOpen
	case gobreaker.StateHalfOpen:
		return BreakerHalfOpen
	default:
		return BreakerUndefined
	}
}

// note queues a change. gobreaker calls it while it holds its own lock, which
// gives the queue the right order, but makes it the wrong place to call out.
func (b *Breaker) note(from, to BreakerState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(b.changes, breakerChange{from, to})
	b.waiting.Store(int32(len(b.changes))) //nolint:gosec // a queue of changes that are being told
}

// deliver tells OnChange what is queued. One goroutine delivers at a time, so
// that order is kept; another one that comes meanwhile, or a call from inside
// OnChange, leaves its changes to the one that is at it.
func (b *Breaker) deliver() {
	if b.waiting.Load() == 0 || !b.claim() {
		return
	}
	for c, ok := b.pop(); ok; c, ok = b.pop() {
		b.onChange(c.from, c.to)
	}
}

// claim makes the caller the one that delivers, unless somebody is.
func (b *Breaker) claim() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.delivering {
		return false
	}
	b.delivering = true
	return true
}

// pop takes the oldest change. Finding none ends the claim in the same step, so
// that a change which is queued right after it finds nobody delivering.
func (b *Breaker) pop() (breakerChange, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) == 0 {
		b.changes = nil // do not keep the array of a busy minute
		b.delivering = false
		return breakerChange{}, false
	}
	c := b.changes[0]
	b.changes = b.changes[1:]
	b.waiting.Store(int32(len(b.changes))) //nolint:gosec // a queue of changes that are being told
	return c, true
}
