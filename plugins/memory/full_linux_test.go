package memory

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestFullDisk: a disk without room says so and what to do; when there is room again, so
// is the memory.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := configured(t, "sqlite:"+filepath.Join(dir, "memory.db"), nil, nil)
	begin(t, p, ada("1")).whole("Remember that my dog is called Rex.")
	junk := filepath.Join(dir, "junk")
	fillUp(t, junk)

	x := begin(t, p, ada("2")).says("What is my dog called?")
	x.fine()
	if !contains(x.recalled(), "Rex") {
		t.Errorf("recalled %q", x.recalled())
	}
	x.ends("I prefer tabs. I live in Graz. We decided to drop MySQL.")
	wantFailure(t, x.errors, "memory_full", "")
	if failed, ok := errors.AsType[*phases.Error](x.errors[0]); !ok || !failed.Retryable {
		t.Errorf("%+v", x.errors[0])
	}

	if err := os.Remove(junk); err != nil {
		t.Fatal(err)
	}
	x.errors = nil
	x.ends("I prefer tabs. I live in Graz. We decided to drop MySQL.")
	x.fine()
	if got := memories(t, p); len(got) != 4 {
		t.Errorf("memories %q", got)
	}
}

// fillUp writes a file until there is no room.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
