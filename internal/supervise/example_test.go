package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/internal/supervise"
)

// clockwork is a service that is up at once and ends when it is stopped.
type clockwork struct{ done chan struct{} }

func (c clockwork) Start(context.Context, uint64) (supervise.Running, error) {
	return clockwork{done: make(chan struct{})}, nil
}

func (c clockwork) Done() <-chan struct{}      { return c.done }
func (c clockwork) Err() error                 { return nil }
func (c clockwork) Stop(context.Context) error { close(c.done); return nil }

// The owner gives Serve a goroutine, waits for the first outcome, and ends it by
// its context.
func ExampleSupervisor() {
	s := supervise.New(clockwork{}, supervise.Options{
		Name:    "clockwork",
		OnEvent: func(e supervise.Event) { fmt.Println(e.Name, e.From, "->", e.Status.State) },
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx) }()

	fmt.Println("first start:", s.Wait(ctx))
	stop()
	fmt.Println("left over:", <-ended)
	// Output:
	// clockwork declared -> starting
	// clockwork starting -> ready
	// first start: <nil>
	// clockwork ready -> draining
	// clockwork draining -> stopped
	// left over: <nil>
}

// The policy is a pure function over a history that the caller keeps.
func ExamplePolicy_Next() {
	p := supervise.Policy{Jitter: -1, Limit: 3}
	var h supervise.History
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		d := p.Next(h, supervise.ClassOrdinary, now)
		fmt.Println(d.Action, d.Delay)
		h = d.History
	}
	// Output:
	// retry 100ms
	// retry 200ms
	// quarantine 0s
}

// Outcomes that say nothing about the target leave a breaker alone.
func ExampleBreaker() {
	b := supervise.NewBreaker(supervise.BreakerOptions{Failures: 2})
	for _, o := range []supervise.Outcome{
		supervise.OutcomeFailure, supervise.OutcomeNeutral, supervise.OutcomeFailure,
	} {
		ticket, err := b.Allow()
		if err != nil {
			fmt.Println(err)
			return
		}
		b.Report(ticket, o)
		fmt.Println(o, "->", b.State())
	}
	_, err := b.Allow()
	fmt.Println(errors.Is(err, supervise.ErrBreakerOpen))
	// Output:
	// failure -> closed
	// neutral -> closed
	// failure -> open
	// true
}
