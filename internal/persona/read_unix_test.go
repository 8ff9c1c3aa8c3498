//go:build unix

package persona

import (
	"errors"
	"os"
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
