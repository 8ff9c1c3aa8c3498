package store_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/store"
)

// TestSQLiteFullDisk fills a disk of its own.
func TestSQLiteFullDisk(t *testing.T) {
	t.Parallel()

	dir := mountTemp(t, "size=1m")
	s := open(t, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	n := appendUntilFull(t, s, 0)
	if n < 10 {
		t.Errorf("full after %d manifests", n)
	}
	wantGood(t, s, n)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	fill(t, s, n, n+3)
	wantGood(t, s, n+3)
}
