package store_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/store"
)

// TestSQLiteOnAReadOnlyMedium has a log on a file system that takes no changes:
// it can be read and verified, and anything else is refused with a code.
//
// It is not parallel: a program that another test starts has this one's files
// open for a moment, and then the medium is busy.
func TestSQLiteOnAReadOnlyMedium(t *testing.T) {
	dir := mountTemp(t, "size=4m")
	dsn := "sqlite:" + filepath.Join(dir, "grapnel.db")
	s := open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 0, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=4m"); err != nil {
		t.Fatal(err)
	}
	wantGood(t, open(t, dsn, store.Options{ReadOnly: true}), 3)
	_, err := store.Open(t.Context(), dsn, store.Options{})
	wantError(t, err, store.CodePermission, "cannot be opened or written")
	_, err = store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "other.db"), store.Options{})
	wantError(t, err, store.CodePermission, "another path")
	_, err = store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "folder", "other.db"), store.Options{})
	wantError(t, err, store.CodePermission, "another path")
}

// mountTemp mounts a file system of its own for a test, which is skipped where
// that is not allowed: it takes root.
func mountTemp(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
