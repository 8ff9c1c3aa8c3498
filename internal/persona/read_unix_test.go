//go:build unix

package persona

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestOpenFlags: a pipe that takes the file's place behind the first look is
// opened without waiting for its writer.
func TestOpenFlags(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadAtMostGivesUp: what has nothing to say and does not end is not waited
// for.
func TestReadAtMostGivesUp(t *testing.T) {
	t.Parallel()

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	if _, err := w.WriteString("begun"); err != nil {
		t.Fatal(err)
	}
	if data, err := readAtMost(r, time.Millisecond); data != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("readAtMost = %q, %v", data, err)
	}
}

// TestReadAtMostGrows: files of any size are read, up to the
// bound.
func TestReadAtMostGrows(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "f")
	for _, size := range []int{0, 511, 512, 513, 5000, MaxBytes, MaxBytes + 1, MaxBytes + 9} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := readAtMost(f, time.Minute)
		if len(data) != min(size, MaxBytes+1) || err != nil {
			t.Errorf("of %d bytes %d were read: %v", size, len(data), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
