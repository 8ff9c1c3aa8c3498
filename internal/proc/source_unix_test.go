//go:build unix

package proc

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestSourceCutShort: what a pipe holds is read although nobody has looked at it in time, and somebody keeps it open.
func TestSourceCutShort(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "last words\n", strings.Repeat("line\n", 10_000)} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		cutShort(r)
		got, err := io.ReadAll(newSource(r))
		if err != nil || string(got) != text {
			t.Errorf("read %d bytes of %d: %v", len(got), len(text), err)
		}
		closeAll([]*os.File{r, w})
	}
}

// TestSourceIsBounded: who keeps a pipe open cannot hold its reader by writing for ever.
func TestSourceIsBounded(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll([]*os.File{r})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for err := error(nil); err == nil; {
			_, err = w.WriteString("more\n")
		}
	}()
	cutShort(r)
	if n, err := io.Copy(io.Discard, newSource(r)); err != nil || n > maxPipe {
		t.Errorf("read %d bytes: %v", n, err)
	}
	closeAll([]*os.File{r, w})
	<-ended
}
