package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/store/treestore"
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
func Tree(tb testing.TB, now func() time.Time) *treestore.Store {
	tb.Helper()
	s, err := treestore.New(tb.Context(), Open(tb, SQLite(tb), sqldb.Options{Synchronous: sqldb.SynchronousNormal}), treestore.Options{Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}
