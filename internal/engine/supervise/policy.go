package supervise

import (
	"cmp"
	"slices"
	"time"
)

const (
	minBackoff, maxBackoff = 100 * time.Millisecond, 30 * time.Second // the wait after a failure, which doubles with each further one
	minMemory, maxMemory   = 5 * time.Second, 2 * time.Minute         // the same for failures of ClassMemory
	jitter                 = 0.5                                      // the random part of a wait
	// resetAfter is how long a service must have been healthy for its next wait to begin at minBackoff again. It does not
	// touch the count for quarantine.
	resetAfter    = time.Minute
	failureLimit  = 5 // the number of counted failures within failureWindow that leads to quarantine
	failureWindow = 5 * time.Minute
)

func setDefault[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// history is what is remembered of one service to decide when it is started again; the zero value has no failures.
type history struct {
	counted []time.Time // the times of the failures that count for quarantine, oldest first
	// streak counts the service's own failures since it was last healthy for long enough, shortages the failures of
	// ClassResource in a row: a host in need must not leave a service with a long wait for its own first failure.
	streak, shortages int
	since             time.Time // the beginning of the current healthy period, or zero
}

// healthy says that the service is healthy since now, or before.
func (h *history) healthy(now time.Time) { h.since = cmp.Or(h.since, now) }

// unhealthy ends the healthy period, and forgets the streak of failures if the period was long enough.
func (h *history) unhealthy(now time.Time) {
	if !h.since.IsZero() && now.Sub(h.since) >= resetAfter {
		h.streak, h.shortages = 0, 0
	}
	h.since = time.Time{}
}

// failed notes a failure and returns the wait before the next start, or that only an operator should start the service
// again. random is in [0, 1).
func (h *history) failed(class Class, now time.Time, random float64) (wait time.Duration, quarantine bool) {
	h.unhealthy(now)
	h.counted = slices.DeleteFunc(h.counted, func(t time.Time) bool { return now.Sub(t) >= failureWindow })
	if class == ClassResource {
		h.shortages++
		return jittered(doubled(minBackoff, maxBackoff, h.shortages), random), false
	}
	h.counted = append(h.counted, now)
	h.streak++
	h.shortages = 0 // the start got far enough to fail by itself
	switch {
	case class == ClassPermanent, len(h.counted) >= failureLimit:
		return 0, true
	case class == ClassMemory:
		return jittered(doubled(minMemory, maxMemory, h.streak), random), false
	}
	return jittered(doubled(minBackoff, maxBackoff, h.streak), random), false
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

func jittered(d time.Duration, random float64) time.Duration {
	return d - time.Duration(jitter*random*float64(d))
}
