package bounded

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/phases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errClosed = errors.New("closed")

// hang is a call that returns when it is released, whatever its context says.
func hang(ctx context.Context, f *Func, release <-chan struct{}, late func(error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := Call(ctx, f, func() (int, error) { <-release; return 1, nil }, late)
	return err
}

// TestCall: values, errors and panics come back, a call that hangs is abandoned.
func TestCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New("the disk", errClosed)
		if got, err := Call(t.Context(), f, func() (int, error) { return 7, nil }, nil); got != 7 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		_, err := Call(t.Context(), f, func() (int, error) { panic("no") }, nil)
		if p, ok := errors.AsType[*PanicError](err); !ok || p.Value != "no" || len(p.Stack) == 0 {
			t.Errorf("a panic became %v", err)
		}
		release, late := make(chan struct{}), make(chan error, 1)
		if err := hang(t.Context(), f, release, func(err error) { late <- err }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that hangs: %v", err)
		}
		if n := f.Hanging(); n != 1 {
			t.Errorf("%d calls hang, want 1", n)
		}
		close(release)
		if err := <-late; err != nil {
			t.Errorf("late: %v", err)
		}
		synctest.Wait()
		if n := f.Hanging(); n != 0 {
			t.Errorf("%d calls hang after all have returned", n)
		}
		if err := f.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := hang(t.Context(), f, release, nil); !errors.Is(err, errClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestHanging: a function that hangs is not called again, and Close says so.
func TestHanging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, release := New("the disk", errClosed), make(chan struct{})
		for range maxHanging {
			_ = hang(t.Context(), f, release, nil)
		}
		if err := hang(t.Context(), f, release, nil); phases.CodeOf(err) != phases.CauseOverloaded {
			t.Errorf("one call more: %v", err)
		}
		if err := f.Close(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "8 calls of the disk have not returned") {
			t.Errorf("Close: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}
