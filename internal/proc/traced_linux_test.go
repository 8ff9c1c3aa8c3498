package proc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
)

// holdTraced traces the process in the third argument and never looks at it, until its input ends.
func holdTraced() {
	runtime.LockOSThread()
	pid, err := strconv.Atoi(os.Args[3])
	if err == nil {
		err = unix.PtraceSeize(pid)
	}
	fmt.Println(err)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// TestTracedZombie: an ended process that another one traces cannot be reaped yet, and nobody
// waits for that.
func TestTracedZombie(t *testing.T) {
	t.Parallel()

	child := exec.CommandContext(t.Context(), "/bin/sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	tracer := exec.CommandContext(t.Context(), os.Args[0], modeArg, "tracer", strconv.Itoa(child.Process.Pid))
	hold, err := tracer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := tracer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = hold.Close(), tracer.Wait() }()
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Skipf("processes cannot be traced here: %s %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	isZombie := func() bool { return slices.Contains(zombies(t), child.Process.Pid) }
	eventually(t, "the traced process", func() string {
		if !isZombie() {
			return "it has not ended"
		}
		return ""
	})
	reaped := make(chan struct{})
	go func() { proc.Reap(child.Process.Pid); close(reaped) }()
	select {
	case <-reaped:
	case <-time.After(patience):
		t.Error("reaping waits for the tracer")
	}
	if !isZombie() {
		t.Error("it was reaped although it is traced")
	}
	if err := hold.Close(); err != nil {
		t.Error(err)
	}
	<-reaped
	eventually(t, "the process that was traced", func() string {
		if proc.Reap(child.Process.Pid); isZombie() {
			return "it is not reaped"
		}
		return ""
	})
}
