package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The defaults of [Health].
const (
	DefaultHealthInterval = 5 * time.Second
	DefaultHealthTimeout  = 2 * time.Second
	DefaultHealthMisses   = 3
)

// errMissed is the cause with which the context of a late check ends.
var errMissed = errors.New("no answer within the deadline")

// Health describes the periodic check of a running service. The zero value
// means that there is none.
type Health struct {
	// Check asks the service whether it is well. It must return soon after its
	// context has ended. It is called from a goroutine of the supervisor's, one
	// call at a time, and no call reaches from one incarnation into the next.
	Check func(ctx context.Context) error
	// Interval is the pause between the end of one check and the next one. It
	// is a pause and no rhythm: after the machine has slept there is nothing to
	// catch up on, and a single late check is a single miss.
	Interval time.Duration
	// Timeout bounds one check, on a clock that stands still while this process is
	// stopped or the machine sleeps: what was late then was the host.
	Timeout time.Duration
	// Misses in a row make a failure; fewer make the service degraded.
	Misses int
}

// withDefaults returns the settings with their zero fields filled.
func (h Health) withDefaults() Health {
	setDefault(&h.Interval, DefaultHealthInterval)
	setDefault(&h.Timeout, DefaultHealthTimeout)
	setDefault(&h.Misses, DefaultHealthMisses)
	return h
}

// loop sends the result of one check after the other until ctx ends.
func (h Health) loop(ctx context.Context, results chan<- error) {
	pause := time.NewTimer(h.Interval)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		err := h.once(ctx)
		select {
		case results <- err:
		case <-ctx.Done():
			return
		}
		pause.Reset(h.Interval)
	}
}

// once makes one check. An answer is an answer also when it comes late: what
// was late may have been this machine, which had slept.
func (h Health) once(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := awake(h.Timeout, func() { cancel(errMissed) })
	defer stop()
	err := h.Check(ctx)
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(err, context.Canceled): // by the cause, which says more
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// awakeSteps is how often the clock of awake looks whether it runs.
const awakeSteps = 8

// awake calls over when this process has run for d, until it is stopped by what it
// returns. The time is measured in short steps, one timer after the other: a
// process that was stopped, or a machine that slept, finds one step over when it
// goes on, however long that was.
func awake(d time.Duration, over func()) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	left, step := awakeSteps, d/awakeSteps
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d-(awakeSteps-1)*step, func() {
		mu.Lock()
		defer mu.Unlock()
		switch left--; {
		case left > 0:
			timer.Reset(step)
		case left == 0:
			over()
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		left = 0
		timer.Stop()
	}
}

// misses counts the checks that were missed in a row.
type misses struct {
	count int
	last  error
}

// add takes the result of a check into account.
func (m *misses) add(err error) {
	if err == nil {
		*m = misses{}
		return
	}
	m.count++
	m.last = err
}

// failure is what the misses amount to once they are too many.
func (m *misses) failure() *Failure {
	return failureOf(m.last, CodeTimeout, m.text())
}

// text says how many checks were missed.
func (m *misses) text() string {
	if m.count == 1 {
		return "1 health check missed"
	}
	return fmt.Sprintf("%d health checks missed in a row", m.count)
}
