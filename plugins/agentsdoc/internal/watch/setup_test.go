package watch

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

var build = agentsdoctest.Build

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(tb testing.TB, path, text string) {
	tb.Helper()
	agentsdoctest.Put(tb, "", path, text)
}

// patience is how long a test waits for what must come.
const patience = time.Minute

// heard waits for one call of a watcher.
func heard(tb testing.TB, calls <-chan []string) []string {
	tb.Helper()
	select {
	case ids := <-calls:
		return ids
	case <-time.After(patience):
		tb.Fatal("nothing was told")
		return nil
	}
}

// listening is a watcher, and what it tells.
func listening(tb testing.TB, o Options) (*Watcher, <-chan []string) {
	tb.Helper()
	calls := make(chan []string, 100)
	o.Changed = func(ids []string) { calls <- ids }
	w := New(o)
	tb.Cleanup(w.Close)
	return w, calls
}
