//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
)

// TestSQLiteOfAnotherUser has a log that this user may read, or not even that.
func TestSQLiteOfAnotherUser(t *testing.T) {
	t.Parallel()

	if os.Geteuid() == 0 {
		t.Skip("modes mean nothing to root; a medium that takes no changes is tested instead")
	}
	dsn := storetest.SQLite(t)
	s := open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 0, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(pathOf(dsn))
	setModes(t, pathOf(dsn), 0o400, dir, 0o500)
	wantGood(t, open(t, dsn, store.Options{ReadOnly: true}), 3)
	_, err := store.Open(t.Context(), dsn, store.Options{})
	wantError(t, err, store.CodePermission, "writable")
	_, err = store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "other.db"), store.Options{})
	wantError(t, err, store.CodePermission, "another path")

	setModes(t, pathOf(dsn), 0o000, dir, 0o700)
	for _, o := range []store.Options{{}, {ReadOnly: true}} {
		_, err := store.Open(t.Context(), dsn, o)
		wantError(t, err, store.CodePermission, "writable")
	}
	setModes(t, pathOf(dsn), 0o600, dir, 0o700)
	s = open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 3, 4)
	wantGood(t, s, 4)
}

func setModes(t *testing.T, path string, mode os.FileMode, dir string, dirMode os.FileMode) {
	t.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, dirMode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // so that it can be removed
}
