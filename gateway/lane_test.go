package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
)

// TestLane: a token gets half of the slots, others get the rest, and who waits for
// too long is refused with the reason.
func TestLane(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		l := newLane(4)
		one, other, open := &rpc.Caller{Name: "one"}, &rpc.Caller{Name: "other"}, &rpc.Caller{Open: true}
		enter := func(c *rpc.Caller) func() { return must(l.enter(t.Context(), c))(t) }
		refused := func(c *rpc.Caller) {
			t.Helper()
			began := time.Now()
			_, err := l.enter(t.Context(), c)
			bad, ok := errors.AsType[*rpc.Error](err)
			if !ok || bad.Code != rpc.CodeOverloaded || bad.Data["share"] != "calls" || time.Since(began) != laneWait {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		}
		first, second := enter(one), enter(one)
		refused(one)
		third, fourth := enter(other), enter(open)
		refused(open)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.enter(ctx, open); err == nil {
			t.Error("a caller who is gone was admitted")
		}
		for range 100 { // there is a place, and nobody to take it
			if _, err := newLane(1).enter(ctx, open); err == nil {
				t.Fatal("a caller who is gone took a place")
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			enter(one)()
		}()
		synctest.Wait()
		first() // lets the waiting one in
		<-done
		for _, leave := range []func(){second, third, fourth} {
			leave()
		}
		for range 4 {
			enter(open)
		}
	})
}
