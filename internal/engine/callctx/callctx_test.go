package callctx

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlinesShareATimer(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var g Group[string]
		defer g.Stop()
		begin := time.Now()
		late := g.New(t.Context(), "late", begin.Add(3*time.Second))
		early := g.New(t.Context(), "early", begin.Add(time.Second))
		ended := g.New(t.Context(), "ended", begin.Add(2*time.Second))
		ended.Cancel()
		if err := ended.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("after Cancel: %v", err)
		}
		for i, c := range []*Context[string]{early, late} {
			<-c.Done()
			if took, want := time.Since(begin), time.Duration(2*i+1)*time.Second; took != want || !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("%s ended after %s with %v", c.Site, took, c.Err())
			}
			c.Cancel()
			if !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("%s: Cancel changed the error to %v", c.Site, c.Err())
			}
		}
	})
}

// TestCancelTellsWhoEnds: a context that the timer is about to end is not free to begin again.
func TestCancelTellsWhoEnds(t *testing.T) {
	t.Parallel()

	var g Group[string]
	defer g.Stop()
	soon := time.Now().Add(time.Hour)
	watched, due := g.New(t.Context(), "watched", soon), g.New(t.Context(), "due", soon)
	watched.Done()
	if !watched.Cancel() || watched.Cancel() {
		t.Error("only the first Cancel of a call ends it")
	}
	if !g.New(t.Context(), "unwatched", soon).Cancel() {
		t.Error("nothing but Cancel could end the call")
	}
	due.Done()
	if got := g.due(soon.Add(time.Second)); len(got) != 1 || got[0] != due {
		t.Fatalf("%d calls are due", len(got))
	}
	if due.Cancel() {
		t.Error("the timer is about to end the call")
	}
}
