package supervise

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The defaults of [Policy].
const (
	DefaultMinBackoff    = 100 * time.Millisecond
	DefaultMaxBackoff    = 30 * time.Second
	DefaultMinMemory     = 5 * time.Second
	DefaultMaxMemory     = 2 * time.Minute
	DefaultJitter        = 0.5
	DefaultResetAfter    = 60 * time.Second
	DefaultFailureLimit  = 5
	DefaultFailureWindow = 5 * time.Minute
)

// Policy decides what follows a failure. It is a value without state of its
// own: what happened before is in the [History] that the caller keeps. The zero
// value has the defaults; a zero field has its default.
//
// A Policy may be shared by any number of supervisors.
type Policy struct {
	// MinBackoff is the wait after a first failure; it doubles with each
	// further one up to MaxBackoff.
	MinBackoff, MaxBackoff time.Duration
	// MinMemory and MaxMemory are the same for failures of ClassMemory. What
	// was too large a moment ago is likely to be too large again, and each
	// attempt presses on the whole host.
	MinMemory, MaxMemory time.Duration
	// Jitter is the part of a wait that is random, so that services which
	// failed together do not come back together: a wait of d becomes one
	// between d*(1-Jitter) and d. At most 1; negative means none.
	Jitter float64
	// ResetAfter is how long a service must have been healthy without a break
	// for its next wait to begin at MinBackoff again. It does not touch the
	// count for quarantine: a service that crashes every 70 s is no good one.
	ResetAfter time.Duration
	// Limit is the number of counted failures within Window that leads to
	// quarantine.
	Limit  int
	Window time.Duration
	// Random returns numbers in [0, 1) and is safe for concurrent use. Nil
	// means math/rand/v2.
	Random func() float64
}

// withDefaults returns the policy with its zero fields filled.
func (p Policy) withDefaults() Policy {
	setDefault(&p.MinBackoff, DefaultMinBackoff)
	setDefault(&p.MaxBackoff, max(DefaultMaxBackoff, p.MinBackoff))
	setDefault(&p.MinMemory, max(DefaultMinMemory, p.MinBackoff))
	setDefault(&p.MaxMemory, max(DefaultMaxMemory, p.MinMemory))
	setDefault(&p.Jitter, DefaultJitter)
	setDefault(&p.ResetAfter, DefaultResetAfter)
	setDefault(&p.Limit, DefaultFailureLimit)
	setDefault(&p.Window, DefaultFailureWindow)
	if p.Random == nil {
		p.Random = rand.Float64
	}
	return p
}

// setDefault fills a field that was left at its zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// History is what a [Policy] remembers of one service. The zero value is that
// of a service which never failed. It is a value: methods return a new one.
type History struct {
	// counted are the times of the failures that count for quarantine and lie
	// within the window, oldest first. Never changed in place.
	counted []time.Time
	// streak is the number of the service's own failures since it was last
	// healthy for long enough.
	streak int
	// shortages is the number of failures of ClassResource in a row. They have
	// a count of their own so that a host in need does not leave a service
	// with a long wait for its own first failure.
	shortages int
	// healthy is the beginning of the current healthy period, or zero.
	healthy time.Time
}

// Healthy returns the history of a service that is healthy from now on. Calling
// it again during the same period changes nothing.
func (h History) Healthy(now time.Time) History {
	if h.healthy.IsZero() {
		h.healthy = now
	}
	return h
}

// Unhealthy ends the healthy period, if there is one, and forgets the streak of
// failures if the period was long enough. Next does this by itself; it is for
// periods that end without a failure.
func (p Policy) Unhealthy(h History, now time.Time) History {
	p = p.withDefaults()
	if !h.healthy.IsZero() && now.Sub(h.healthy) >= p.ResetAfter {
		h.streak, h.shortages = 0, 0
	}
	h.healthy = time.Time{}
	return h
}

// Action is what a [Policy] decided.
type Action int

// The actions after a failure.
const (
	// ActionUndefined is the zero value and is never decided.
	ActionUndefined Action = iota
	// ActionRetry: start again after the delay.
	ActionRetry
	// ActionQuarantine: do not start again until an operator says so.
	ActionQuarantine
)

// actionNames holds the words of the actions, by their number.
//
//nolint:gochecknoglobals // an immutable table
var actionNames = [...]string{"undefined", "retry", "quarantine"}

// String returns the word of the action.
func (a Action) String() string { return word(actionNames[:], "Action", int(a)) }

// ParseAction is the inverse of [Action.String]. It refuses unknown words and
// "undefined".
func ParseAction(text string) (Action, error) {
	n, err := parseWord(actionNames[:], "action", text)
	return Action(n), err
}

// Decision is the answer to one failure.
type Decision struct {
	Action Action
	// Delay is the wait before the next start. Zero with ActionQuarantine.
	Delay time.Duration
	// Failures is how many failures within the window are counted now.
	Failures int
	// History is what to hand to the next call.
	History History
}

// Next decides what follows a failure of the given class at the time now, after
// what history tells. It does not change history. Apart from the number that it
// takes from Random it is a pure function of its arguments.
func (p Policy) Next(history History, class Class, now time.Time) Decision {
	p = p.withDefaults()
	h := p.Unhealthy(history, now)
	h.counted = p.withinWindow(h.counted, now)
	if class == ClassResource {
		h.shortages++
		return p.retry(h, p.MinBackoff, p.MaxBackoff, h.shortages)
	}

	h.counted = append(h.counted, now)
	h.streak++
	// The start got far enough to fail by itself: the host's need is over.
	h.shortages = 0
	switch {
	case class == ClassPermanent, len(h.counted) >= p.Limit:
		return Decision{Action: ActionQuarantine, Failures: len(h.counted), History: h}
	case class == ClassMemory:
		return p.retry(h, p.MinMemory, p.MaxMemory, h.streak)
	default:
		return p.retry(h, p.MinBackoff, p.MaxBackoff, h.streak)
	}
}

// withinWindow returns a new slice with the failures that still count at now. The
// copy is what makes History a value: two decisions that begin with the same
// history must not write into the same array.
func (p Policy) withinWindow(counted []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(counted), func(t time.Time) bool {
		return now.Sub(t) >= p.Window
	})
}

// retry builds the decision to start again after the n-th wait in a row.
func (p Policy) retry(h History, least, most time.Duration, n int) Decision {
	return Decision{
		Action:   ActionRetry,
		Delay:    p.jittered(doubled(least, most, n)),
		Failures: len(h.counted),
		History:  h,
	}
}

// doubled returns least * 2^(n-1), but not more than most. It steps instead of
// shifting because a shift by a large n would overflow to a tiny wait.
func doubled(least, most time.Duration, n int) time.Duration {
	d := least
	for i := 1; i < n && d < most; i++ {
		// Past half of the limit, one more doubling can only reach the limit.
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// jittered shortens d by a random part of it. It never lengthens, so that the
// longest wait is a promise.
func (p Policy) jittered(d time.Duration) time.Duration {
	part := min(max(p.Jitter, 0), 1)
	draw := min(max(p.Random(), 0), 1)
	return d - time.Duration(part*draw*float64(d))
}
