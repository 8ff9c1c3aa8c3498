package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes a tree of files in a new directory and returns its real path.
func build(tb testing.TB, tree map[string]string) string {
	tb.Helper()
	base, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	for name, text := range tree {
		write(tb, filepath.Join(base, filepath.FromSlash(name)), text)
	}
	return base
}

// write makes a file and its directories.
func write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

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
