package proc

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

// TestReadProc compares readProc with os.ReadFile for files of all sizes that stay the same.
func TestReadProc(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"cmdline", "environ", "cgroup", "mountinfo", "exe", "comm"} {
		want, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getpid()) + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readProc(os.Getpid(), name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes and %v, want %d", name, len(got), err, len(want))
		}
	}
	if _, err := readProc(os.Getpid(), "nothing"); !os.IsNotExist(err) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func BenchmarkReadProcesses(b *testing.B) {
	for b.Loop() {
		readProcesses(0)
	}
}
