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
	if data, err := readAtMost(r, time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("readAtMost = %q, %v", data, err)
	}
}

// TestHalfWrittenFileGoes: what the disk has no room for is not left behind. It is not parallel: the limit is the process's.
func TestHalfWrittenFileGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "SOUL.md")
	var was syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was)
	few := was
	few.Cur = 3
	if err = errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &few)); err != nil {
		t.Fatal(err)
	}
	made, err := create(path, []byte("Hello"))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if _, left := os.Lstat(path); made || !errors.Is(err, syscall.EFBIG) || !errors.Is(left, os.ErrNotExist) {
		t.Errorf("create = %v, %v; the file: %v", made, err, left)
	}
}
