//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLoadDoesNotWait opens a pipe that nobody writes to.
func TestLoadDoesNotWait(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Load(path)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Load waits for the pipe")
	}
}
