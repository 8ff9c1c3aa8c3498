package supervise

import (
	"cmp"
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

// Policy decides what follows a failure. It is a value without state: the past is in the [History] that the caller
// keeps. Fields that are not positive have their defaults. It may be shared.
type Policy struct {
	// MinBackoff is the wait after a first failure; it doubles with each further one up to MaxBackoff.
	MinBackoff, MaxBackoff time.Duration
	MinMemory, MaxMemory   time.Duration // MinMemory and MaxMemory are the same for failures of ClassMemory
	// Jitter is the random part of a wait: d becomes a wait between d*(1-Jitter) and d. At most 1; negative means
	// none.
	Jitter float64
	// ResetAfter is how long a service must have been healthy for its next wait to begin at MinBackoff again. It does
	// not touch the count for quarantine.
	ResetAfter time.Duration
	Limit      int // the number of counted failures within Window that leads to quarantine
	Window     time.Duration
	Random     func() float64 // Random returns numbers in [0, 1), concurrently; nil means math/rand/v2
}

func (p Policy) withDefaults() Policy {
	setDefault(&p.MinBackoff, DefaultMinBackoff)
	setDefault(&p.MaxBackoff, max(DefaultMaxBackoff, p.MinBackoff))
	setDefault(&p.MinMemory, max(DefaultMinMemory, p.MinBackoff))
	setDefault(&p.MaxMemory, max(DefaultMaxMemory, p.MinMemory))
	p.Jitter = cmp.Or(p.Jitter, DefaultJitter)
	setDefault(&p.ResetAfter, DefaultResetAfter)
	setDefault(&p.Limit, DefaultFailureLimit)
	setDefault(&p.Window, DefaultFailureWindow)
	if p.Random == nil {
		p.Random = rand.Float64
	}
	return p
}

func setDefault[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// History is what a [Policy] remembers of one service; the zero value has no failures. Methods return a new one.
type History struct {
	// counted are the times of the failures that count for quarantine, oldest first. Never changed in place.
	counted []time.Time
	// streak counts the service's own failures since it was last healthy for long enough, shortages the failures of
	// ClassResource in a row: a host in need must not leave a service with a long wait for its own first failure.
	streak, shortages int
	healthy           time.Time // the beginning of the current healthy period, or zero
}

// Healthy returns the history of a service that is healthy since now, or before.
func (h History) Healthy(now time.Time) History {
	if h.healthy.IsZero() {
		h.healthy = now
	}
	return h
}

// Unhealthy ends the healthy period, and forgets the streak of failures if the period was long enough. Next does this
// by itself.
func (p Policy) Unhealthy(h History, now time.Time) History {
	p = p.withDefaults()
	if !h.healthy.IsZero() && now.Sub(h.healthy) >= p.ResetAfter {
		h.streak, h.shortages = 0, 0
	}
	h.healthy = time.Time{}
	return h
}

// Action is the decision of a [Policy].
type Action string

// The actions after a failure.
const (
	ActionRetry      Action = "retry"      // start again after the delay
	ActionQuarantine Action = "quarantine" // do not start again until an operator says so
)

// Decision is the answer to one failure.
type Decision struct {
	Action   Action
	Delay    time.Duration // the wait before the next start. Zero with ActionQuarantine.
	Failures int           // how many failures within the window are counted now
	History  History       // what to hand to the next call
}

// Next decides what follows a failure of the given class at the time now. It does not change history. But for Random
// it is a pure function of its arguments.
func (p Policy) Next(history History, class Class, now time.Time) Decision {
	p = p.withDefaults()
	h := p.Unhealthy(history, now)
	h.counted = slices.DeleteFunc(slices.Clone(h.counted), func(t time.Time) bool { return now.Sub(t) >= p.Window })
	if class == ClassResource {
		h.shortages++
		return p.retry(h, p.MinBackoff, p.MaxBackoff, h.shortages)
	}

	h.counted = append(h.counted, now)
	h.streak++
	// The start got far enough to fail by itself: the shortage is over.
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

func (p Policy) retry(h History, least, most time.Duration, n int) Decision {
	return Decision{ActionRetry, p.jittered(doubled(least, most, n)), len(h.counted), h}
}

// doubled returns least * 2^(n-1), but not more than most.
func doubled(least, most time.Duration, n int) time.Duration {
	d := least
	for i := 1; i < n && d < most; i++ {
		if d > most/2 { // doubling could overflow
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// jittered shortens d by a random part of it.
func (p Policy) jittered(d time.Duration) time.Duration {
	part := min(max(p.Jitter, 0), 1)
	draw := min(max(p.Random(), 0), 1)
	return d - time.Duration(part*draw*float64(d))
}
