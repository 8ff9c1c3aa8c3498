package wire

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func newHandling(remaining time.Duration) *handling {
	h := &handling{Context: context.WithValue(context.Background(), turnKey{}, "v")}
	h.within(remaining)
	return h
}

func TestHandlingIsAContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandling(time.Second)
		until, ok := h.Deadline()
		if !ok || time.Until(until) != time.Second || h.Err() != nil || context.Cause(h) != nil {
			t.Errorf("deadline %v, error %v", until, h.Err())
		}
		if h.Value(turnKey{}) != "v" || handlingOf(h) != h {
			t.Error("values are lost")
		}
		derived, cancel := context.WithTimeout(context.WithValue(h, turnKey{}, "w"), time.Hour)
		defer cancel()
		if handlingOf(derived) != h {
			t.Error("a derived context does not know its call")
		}
		select {
		case <-derived.Done():
			t.Fatal("ended early")
		case <-time.After(999 * time.Millisecond):
		}
		<-h.Done()
		<-derived.Done()
		for _, ctx := range []context.Context{h, derived} {
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("ended by %v", ctx.Err())
			}
		}
	})
}

func TestHandlingWithoutDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandling(time.Second)
		time.Sleep(2 * time.Second)
		if !errors.Is(h.Err(), context.DeadlineExceeded) {
			t.Errorf("got %v", h.Err())
		}
		select {
		case <-h.Done():
		default:
			t.Error("Err is set and Done is open")
		}
	})
}

func TestHandlingCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandling(0)
		if _, ok := h.Deadline(); ok {
			t.Error("a deadline from nowhere")
		}
		done := h.Done()
		ran := make(chan struct{})
		kept := context.AfterFunc(h, func() { close(ran) })
		stopped := context.AfterFunc(h, func() { t.Error("ran although it was stopped") })
		if !stopped() || stopped() {
			t.Error("stop reports that it stopped, once")
		}
		h.cancel(context.Canceled)
		h.cancel(context.DeadlineExceeded)
		<-done
		<-ran
		if kept() {
			t.Error("stopped what had run")
		}
		if !errors.Is(h.Err(), context.Canceled) {
			t.Errorf("got %v", h.Err())
		}
		late := make(chan struct{})
		context.AfterFunc(h, func() { close(late) })
		<-late
		synctest.Wait()
	})
}

// TestHandlingLeavesNoTimer: a bubble ends only when its timers are stopped.
func TestHandlingLeavesNoTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandling(time.Hour)
		done := h.Done()
		start := time.Now()
		h.cancel(context.Canceled)
		<-done
		synctest.Wait()
		if time.Since(start) != 0 {
			t.Errorf("it took %v", time.Since(start))
		}
	})
}
