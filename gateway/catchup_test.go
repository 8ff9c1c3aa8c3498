package gateway

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// TestCatchUpGaps: who was away is told of a gap where the changes since are too many or not known any more.
func TestCatchUpGaps(t *testing.T) {
	t.Parallel()

	clock := storetest.NewClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	model := storetest.Tree(t, clock.Now)
	workspace(t, model, "w")
	h := quietHub(model)
	h.step(t.Context())
	since, _, _ := h.place()
	save(t, model, "w", "", "one")
	h.step(t.Context())
	seq, _, _ := h.place()
	for name, at := range map[string]tree.Seq{"a place that never was": 1 << 40, "too much": seq} {
		if name == "too much" {
			for i := range burst + 1 {
				folder(t, model, fmt.Sprintf("f%d", i))
			}
			h.step(t.Context())
		}
		c := newConn()
		got, err := h.catchUp(t.Context(), c, "w", at)
		if place, _, _ := h.place(); err != nil || !got.Gap || got.Seq != place {
			t.Errorf("%s: %+v, %v, want a gap at %d", name, got, err, place)
		}
		save(t, model, "w", "", "behind "+name)
		h.step(t.Context())
		if n := c.all(); len(n) == 0 || n[len(n)-1].Summary == nil {
			t.Errorf("%s: told %+v afterwards", name, n)
		}
	}
	clock.Add(tree.ChangesAge + time.Hour)
	must(model.Thin(t.Context(), clock.Now()))(t)
	if got, err := h.catchUp(t.Context(), newConn(), "w", since); err != nil || !got.Gap {
		t.Errorf("a place that is forgotten: %+v, %v, want a gap", got, err)
	}
}

// TestHubGap: where the log itself has a gap, such as that of a copy that was put
// back, everybody is told to read again.
func TestHubGap(t *testing.T) {
	t.Parallel()

	model, copied := storetest.Tree(t, nil), storetest.Tree(t, nil)
	workspace(t, copied, "w")
	workspace(t, model, "w")
	for i := range 10 {
		save(t, model, "w", "", strconv.Itoa(i))
	}
	swapped := &faulty{Store: model}
	h := quietHub(swapped)
	h.step(t.Context())
	c := newConn()
	must(h.join(c, "w", false))(t)
	swapped.Store = copied
	h.step(t.Context())
	place, _, _ := h.place()
	if n := c.all(); len(n) != 1 || !n[0].Gap || n[0].Seq != place {
		t.Fatalf("told %+v, want a gap at %d", n, place)
	}
	save(t, copied, "w", "", "text")
	h.step(t.Context())
	if n := c.all(); len(n) != 2 || n[1].Summary == nil {
		t.Errorf("told %+v, want what was saved in the copy", n)
	}
}

// TestWatches checks who is counted as watching, and when that ends.
func TestWatches(t *testing.T) {
	t.Parallel()

	model := storetest.Tree(t, nil)
	h := quietHub(model)
	c := newConn()
	h.step(t.Context())
	for i := range maxWatches {
		must(h.join(c, strconv.Itoa(i), false))(t)
		must(h.join(c, strconv.Itoa(i), false))(t) // again is no other one
	}
	if _, err := h.join(c, "one more", false); err == nil {
		t.Error("a connection watches more than it may")
	}
	if got := h.count(); got != maxWatches {
		t.Errorf("%d watches, want %d", got, maxWatches)
	}
	if _, ok := h.stop(c, "0"); !ok || h.count() != maxWatches-1 {
		t.Errorf("left: %v, %d watches", ok, h.count())
	}
	if _, ok := h.stop(c, "0"); ok {
		t.Error("left twice")
	}
	// A workspace that is deleted ends its watches, behind the notification.
	workspace(t, model, "1")
	other := newConn()
	must(h.join(other, "1", false))(t)
	must(model.DeleteWorkspace(t.Context(), tree.DeleteWorkspace{WorkspaceID: "1"}))(t)
	h.step(t.Context())
	if n := other.all(); len(n) != 1 || n[0].Action != tree.Deleted || h.count() != maxWatches-2 {
		t.Errorf("told %+v, %d watches", n, h.count())
	}
}

// TestWatchesEnd: a connection that ends watches nothing any more, also one that
// has ended before it watched.
func TestWatchesEnd(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := quietHub(storetest.Tree(t, nil))
		h.step(t.Context())
		c, other := newConn(), newConn()
		defer other.end()
		for _, id := range []string{"w", "v"} {
			must(h.join(c, id, false))(t)
		}
		must(h.join(other, "w", false))(t)
		for range 2 {
			c.end()
			synctest.Wait()
			if h.count() != 1 || len(h.conns) != 1 || len(h.of) != 1 {
				t.Errorf("%d watches, %d connections, %d workspaces, want what the other has", h.count(), len(h.conns), len(h.of))
			}
			must(h.join(c, "w", false))(t)
		}
		synctest.Wait()
	})
}

// TestCatchUpTooFast: a client that never gets as far as the hub is told to read
// again, instead of being kept.
func TestCatchUpTooFast(t *testing.T) {
	t.Parallel()

	model := &faulty{Store: storetest.Tree(t, nil)}
	workspace(t, model, "w")
	h := quietHub(model)
	h.step(t.Context())
	since, _, _ := h.place()
	model.reading = func(after tree.Seq) {
		if after != newest { // while the client reads, the hub gets further
			h.mu.Lock()
			h.taken++
			h.mu.Unlock()
		}
	}
	got, err := h.catchUp(t.Context(), newConn(), "w", since)
	if err != nil || !got.Gap {
		t.Errorf("%+v, %v, want a gap", got, err)
	}
	model.down.Store(true)
	if _, err := h.catchUp(t.Context(), newConn(), "w", since); !errors.Is(err, errDown) {
		t.Errorf("%v, want that it is down", err)
	}
}

var _ conn = (*rpc.Conn)(nil)
