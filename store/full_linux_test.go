package store_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/store"
)

// TestSQLiteFullDisk fills a disk of its own.
func TestSQLiteFullDisk(t *testing.T) {
	t.Parallel()

	dir := mountTemp(t, "size=2m")
	s := open(t, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	n := appendUntilFull(t, s, 0)
	if n < 10 {
		t.Errorf("full after %d manifests", n)
	}
	wantGood(t, s, n)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	fillThread(t, s, "w", "t", n, n+3)
	wantGood(t, s, n+3)
}

// TestProbeFullDisk: a disk without room is found before a manifest is lost.
func TestProbeFullDisk(t *testing.T) {
	t.Parallel()

	dir := mountTemp(t, "size=16m")
	s := open(t, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	if err := s.DB().Probe(t.Context()); err != nil {
		t.Fatalf("before: %v", err)
	}
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.DB().Probe(t.Context()), store.CodeFull, "free space")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.DB().Probe(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
