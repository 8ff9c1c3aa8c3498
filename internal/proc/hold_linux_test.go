package proc_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

// attackThreads tries to signal, to read and to trace each thread of the host.
// One of them has started this process, and was confined as it is.
func attackThreads(_, log *os.File) {
	host := os.Getppid()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", host))
	_, _ = fmt.Fprintln(log, "threads", len(tasks) > 2, err)
	for _, task := range tasks {
		var tid int
		_, _ = fmt.Sscan(task.Name(), &tid)
		for what, err := range map[string]error{
			"signal":        unix.Tgkill(host, tid, 0),
			"signal as one": unix.Kill(tid, 0),
			"read memory":   readMemory(tid),
			"open memory":   openFile(fmt.Sprintf("/proc/%d/task/%d/mem", host, tid)),
			"environment":   openFile(fmt.Sprintf("/proc/%d/task/%d/environ", host, tid)),
		} {
			if err == nil {
				_, _ = fmt.Fprintln(log, "threads reached:", what)
			}
		}
	}
}

// openFile opens a file to read it.
func openFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// TestThreadsOfTheHost grants a plugin all of /proc and has it attack every
// thread of the host.
func TestThreadsOfTheHost(t *testing.T) {
	needT1(t)
	reached := map[sandbox.Tier]int{}
	for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1} {
		b := setup(t)
		spec := b.spec("threads")
		spec.Sandbox = proc.Sandbox{Tier: tier, Policy: sandbox.Policy{Read: []string{"/"}}}
		p := b.act(t, spec)
		if first := b.waitLine(t, "threads ").Message; first != "threads true <nil>" {
			t.Errorf("%s: %s", tier, first)
		}
		for l := b.waitLine(t, ""); l.Message != "done"; l = b.waitLine(t, "") {
			if strings.HasPrefix(l.Message, "threads reached") {
				reached[tier]++
				if tier == sandbox.T1 {
					t.Errorf("%s", l.Message)
				}
			}
		}
		stop(t, p)
	}
	if reached[sandbox.T0] == 0 {
		t.Error("without the sandbox no thread was reached: the attempts are none")
	}
}

// scratch is what readMemory reads.
var scratch [8]byte

// readMemory reads from another process or thread of the test binary.
func readMemory(id int) error {
	var data [8]byte
	here := uintptr(unsafe.Pointer(&scratch))
	_, err := unix.ProcessVMReadv(id, []unix.Iovec{{Base: &data[0], Len: 8}}, []unix.RemoteIovec{{Base: here, Len: 8}}, 0)
	return err
}
