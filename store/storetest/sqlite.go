package storetest

import (
	"path/filepath"
	"testing"
)

// SQLite returns the DSN of an embedded database that is not there yet, in a
// folder of the test's own.
func SQLite(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + filepath.Join(tb.TempDir(), "grapnel.db")
}
