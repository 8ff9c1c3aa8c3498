package agentsdoctest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user without rights.
const nobody = 65534

// AsOrdinary runs a function as a user with ordinary rights: if the superuser runs the tests, on a thread that
// accesses files as another user. base is the test's tree.
func AsOrdinary(t *testing.T, base string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	// The directory of the test is closed to others.
	if err := os.Chmod(filepath.Dir(base), 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	var skip string
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this
		if err := unix.Setfsuid(nobody); err != nil {
			skip = "no other user here: " + err.Error()
			return
		}
		if uid, err := unix.SetfsuidRetUid(-1); err != nil || uid != nobody {
			skip = "the superuser may not look at files as another"
			return
		}
		if _, err := os.Stat(base); err != nil {
			skip = "the directory for temporary files is closed to others"
			return
		}
		f()
	}()
	<-done
	if skip != "" {
		t.Skip(skip)
	}
}
