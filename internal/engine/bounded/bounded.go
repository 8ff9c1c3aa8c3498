// Package bounded calls code of others that may hang in a way no context ends, or panic.
//
// Stability: internal.
package bounded

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	// maxCalls is how many calls may run at one time; further ones wait.
	maxCalls = 64
	// maxHanging is how many abandoned calls may be running before calls fail at once.
	maxHanging = 8
	// closeTime is how long Close waits for running calls.
	closeTime = 500 * time.Millisecond
)

// Func bounds the calls of one function that may hang, such as a sink: it never holds up a caller beyond the caller's
// context, and never runs more than 64 goroutines.
type Func struct {
	name    string
	closeAs error
	slots   chan struct{}
	// hanging counts the abandoned calls that have not returned.
	hanging atomic.Int64
	closed  atomic.Bool
}

// New returns the bounds of a function, by its name in errors. After Close calls fail with the given error.
func New(name string, closed error) *Func {
	return &Func{name: name, closeAs: closed, slots: make(chan struct{}, maxCalls)}
}

// Hanging is how many calls were abandoned and have not returned.
func (b *Func) Hanging() int { return int(b.hanging.Load()) }

// Call runs do on its own goroutine and waits for it until ctx ends. Then it returns the cause of ctx; late, if not
// nil, gets the error of do when that returns. A panic is a [*PanicError].
func Call[T any](ctx context.Context, b *Func, do func() (T, error), late func(error)) (none T, err error) {
	if b.closed.Load() {
		return none, b.closeAs
	}
	if n := b.hanging.Load(); n >= maxHanging {
		return none, phases.Errorf(phases.CauseOverloaded, "%s hangs: %d calls have not returned", b.name, n)
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return none, phases.Errorf(phases.CauseOverloaded, "%s is busy with %d calls", b.name, maxCalls)
	}
	type result struct {
		value T
		err   error
	}
	var over atomic.Bool // set by whoever is first: do returns, or its caller gives up
	done := make(chan result, 1)
	go func() {
		defer func() { <-b.slots }()
		value, err := Recovered(do)
		if over.CompareAndSwap(false, true) {
			done <- result{value, err}
			return
		}
		if late != nil {
			late(err)
		}
		b.hanging.Add(-1)
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	b.hanging.Add(1)
	if over.CompareAndSwap(false, true) {
		return none, context.Cause(ctx)
	}
	b.hanging.Add(-1)
	r := <-done
	return r.value, r.err
}

// Close refuses further calls and waits a bounded time for running ones, whatever is left of ctx. It fails if some of
// them hang.
func (b *Func) Close(ctx context.Context) error {
	if b.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	for n := range cap(b.slots) {
		select {
		case b.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d calls of %s have not returned: %w", cap(b.slots)-n, b.name, context.Cause(ctx))
		}
	}
	return nil
}

// PanicError is a panic that was recovered.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Recovered calls do and makes a panic an error.
func Recovered[T any](do func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, debug.Stack()}
		}
	}()
	return do()
}

// Abandonable runs call on its own goroutine and waits for it until ctx ends; then it returns the cause of ctx. freed
// runs when the call has ended.
func Abandonable[T any](ctx context.Context, freed func(), call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer freed()
		value, err := Recovered(call)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Cancelled reports whether the caller has gone. Its deadline does not count: that is a budget like any other.
func Cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// TimeUp is why a caller got no answer.
func TimeUp(caller context.Context) *phases.Error {
	if Cancelled(caller) {
		return phases.Errorf(phases.CauseCancelled, "the caller does not wait any longer")
	}
	return phases.Errorf(phases.CauseTimeout, "no answer in time")
}

// Pause waits for d; false if until or the end of ctx comes before.
func Pause(ctx context.Context, d time.Duration, until time.Time) bool {
	if time.Until(until) <= d {
		return false
	}
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
