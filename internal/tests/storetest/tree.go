package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store"
)

// Clock is a clock that stands still until it is moved. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock that shows the given time.
func NewClock(at time.Time) *Clock { return &Clock{at: at} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Add moves the clock, backwards if d is negative.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Tree returns an empty tree in an embedded database, which is closed with the test. A nil clock is time.Now.
func Tree(tb testing.TB, now func() time.Time) tree.Store {
	tb.Helper()
	return TreeOf(tb, SQLite(tb), store.Options{Synchronous: store.SynchronousNormal, Now: now})
}

// TreeOf opens the tree of a database, which is closed with the test.
func TreeOf(tb testing.TB, dsn string, o store.Options) tree.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), dsn, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	t, err := s.Tree(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return t
}
