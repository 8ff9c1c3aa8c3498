package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var errMissed = errors.New("no answer within the deadline")

// Health describes the periodic check of a running service. Without Check there is none.
type Health struct {
	// Check asks the service whether it is well, one call at a time. It must return soon after its context has ended.
	Check    func(ctx context.Context) error
	Interval time.Duration // the pause between the end of one check and the next one; 5 s if 0
	// Timeout bounds one check, on a clock that stands still while this process is stopped or the machine sleeps; 2 s
	// if 0.
	Timeout time.Duration
	Misses  int // Misses in a row make a failure, fewer make the service degraded; 3 if 0
}

func (h Health) withDefaults() Health {
	setDefault(&h.Interval, 5*time.Second)
	setDefault(&h.Timeout, 2*time.Second)
	setDefault(&h.Misses, 3)
	return h
}

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

// once makes one check. A late answer still counts: this machine may have slept.
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

const awakeSteps = 8

// awake calls over when this process has run for d, unless stop is called before. The time is measured in short
// steps, so that a stopped process or a sleeping machine loses one step at most.
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

type misses struct {
	count int
	last  error
}

func (m *misses) add(err error) {
	if err == nil {
		*m = misses{}
		return
	}
	m.count++
	m.last = err
}

func (m *misses) failure() *Failure {
	return failureOf(m.last, CodeTimeout, m.text())
}

func (m *misses) text() string {
	if m.count == 1 {
		return "1 health check missed"
	}
	return fmt.Sprintf("%d health checks missed in a row", m.count)
}
