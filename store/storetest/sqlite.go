package storetest

import (
	"path/filepath"
	"testing"
)

// SQLite returns the DSN of an embedded database that is not there yet, in a
// folder of the test's own.
func SQLite(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "grapnel.db")
}
