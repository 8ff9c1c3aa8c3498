package wire

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// stuck is a plugin whose hook "stuck" waits for release whatever its context
// says, and "polite" returns when its context ends.
type stuck struct {
	testPlugin
	started chan string
	release chan struct{}
}

func newStuck() *stuck {
	p := &stuck{started: make(chan string, 100), release: make(chan struct{})}
	p.dispatch = func(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
		switch d.Hook {
		case "stuck":
			p.started <- d.Hook
			<-p.release
		case "polite":
			p.started <- d.Hook
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return echo(d), nil
	}
	return p
}

func hook(name string) *phases.Dispatch {
	return &phases.Dispatch{Hook: name, Phase: phases.SessionEnd}
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	why := errors.New("the user has left")
	cases := []struct {
		name string
		ctx  func(context.Context) (context.Context, func())
		want phases.Cause
		is   error
		// hooks that do not know of the deadline by themselves, which would
		// race with the host's.
		hooks []string
	}{
		{"deadline", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			return ctx, func() { <-ctx.Done(); cancel() }
		}, phases.CauseTimeout, context.DeadlineExceeded, []string{"stuck"}},
		{"cancelled", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(why) }
		}, phases.CauseCancelled, why, []string{"polite", "stuck"}},
		{"cancelled for the lack of time", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(&phases.Error{Code: phases.CauseBudgetExhausted}) }
		}, phases.CauseBudgetExhausted, context.Canceled, []string{"polite", "stuck"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newStuck()
			dropped := make(chan Dropped, 10)
			s := open(t, serve(t, p, 0), HostOptions{OnDropped: func(d Dropped, _ uint64) { dropped <- d }})
			for _, name := range c.hooks {
				ctx, end := c.ctx(deadline(t))
				go func() { <-p.started; end() }()
				f := newFreed()
				_, _, err := s.Dispatch(ctx, hook(name), f.call)
				checkCode(t, err, c.want)
				if !errors.Is(err, c.is) {
					t.Errorf("%v is no %v", err, c.is)
				}
				if name == "stuck" {
					if f.count.Load() != 0 {
						t.Error("the slot was freed while the plugin holds it")
					}
					close(p.release)
				}
				f.wait(t)
				if got := <-dropped; got != DroppedLate {
					t.Errorf("dropped as %v, want late", got)
				}
			}
		})
	}
}

func TestCloseFreesEverything(t *testing.T) {
	t.Parallel()
	p := newStuck()
	defer close(p.release)
	s := open(t, serve(t, p, 0), HostOptions{})
	abandoned, waiting := newFreed(), newFreed()
	ctx, cancel := context.WithCancel(deadline(t))
	go func() { <-p.started; cancel() }()
	_, _, err := s.Dispatch(ctx, hook("stuck"), abandoned.call)
	checkCode(t, err, phases.CauseCancelled)
	result := make(chan error)
	go func() {
		_, _, err := s.Dispatch(deadline(t), hook("stuck"), waiting.call)
		result <- err
	}()
	<-p.started
	s.Close()
	checkCode(t, <-result, phases.CauseSessionReset)
	abandoned.wait(t)
	waiting.wait(t)
	<-s.Done()
	if err := s.Err(); !errors.Is(err, errClosed) {
		t.Errorf("ended by %v", err)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	p := newStuck()
	s := open(t, serve(t, p, 0), HostOptions{})
	result, drained := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := s.Dispatch(deadline(t), hook("stuck"), nil)
		result <- err
	}()
	<-p.started
	go func() { drained <- s.Drain(deadline(t)) }()
	for s.calls.open.Load() < 2 {
		runtime.Gosched()
	}
	if err := s.Ping(deadline(t)); err != nil || len(drained) > 0 {
		t.Errorf("the drain is answered before the call: %v", err)
	}
	close(p.release)
	if err := errors.Join(<-result, <-drained); err != nil {
		t.Error(err)
	}
}
