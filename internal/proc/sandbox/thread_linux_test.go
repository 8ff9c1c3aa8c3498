package sandbox

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread that ends with it and is not the first.
func onThread(f func()) {
	done := make(chan struct{})
	var run func(found chan<- struct{})
	run = func(found chan<- struct{}) {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			other := make(chan struct{})
			go run(other)
			<-other
			runtime.UnlockOSThread()
			close(found)
			return
		}
		close(found)
		defer close(done)
		f()
	}
	go run(make(chan struct{}))
	<-done
}

// started is what a confined program was and did.
type started struct {
	output string
	code   int
}

// runConfined runs a program under a policy and returns its output, errors
// included, and its exit status. Its private directory is its working directory. Its
// standard input ends once its limits are set.
func runConfined(t *testing.T, p Policy, script bool, path string, args ...string) started {
	t.Helper()

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	directory := t.TempDir()
	c, err := Prepare(p, Program{Files: []*os.File{file}, Script: script, Dir: directory})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, limited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var proc *os.Process
	onThread(func() {
		if err = c.Apply(); err != nil {
			return
		}
		proc, err = os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
			Dir: directory, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=" + directory}, Files: []*os.File{in, w, w},
		})
	})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	err = c.Limit(proc.Pid, nil)
	_ = limited.Close()
	state, waited := proc.Wait()
	out, unread := io.ReadAll(r)
	_ = r.Close()
	if err := errors.Join(err, waited, unread); err != nil {
		t.Fatal(err)
	}
	return started{strings.TrimSpace(string(out)), state.ExitCode()}
}
