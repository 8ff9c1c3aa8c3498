package proc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// The operations of FUSE that slowFile knows by name.
const (
	fuseLookup, fuseOpen, fuseFlush, fuseInit = 1, 14, 25, 26
)

// slowFile serves a file system with one file, "f", which a process that has it open
// cannot close, and so cannot end, before may is closed.
func slowFile(t *testing.T, dir string, may <-chan struct{}) {
	t.Helper()

	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("slow", dir, "fuse.slow", unix.MS_NOSUID, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device))
	}
	if err != nil {
		t.Skip(err)
	}
	var served sync.WaitGroup
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		served.Wait()
	})
	served.Go(func() {
		defer func() { _ = unix.Close(device) }()
		request := make([]byte, 1<<17)
		for {
			n, err := unix.Read(device, request)
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil { // it is not mounted any more
				return
			}
			answer := answerFUSE(request[:n], may)
			if answer == nil {
				continue
			}
			binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
			copy(answer[8:16], request[8:16]) // the request's number
			_, _ = unix.Write(device, answer)
		}
	})
}

// answerFUSE makes the answer to one request; nil if there is none.
func answerFUSE(request []byte, may <-chan struct{}) []byte {
	native := binary.NativeEndian
	answer := make([]byte, 16)
	attr := func(node uint64, mode uint32) []byte {
		a := make([]byte, 88)
		native.PutUint64(a, node)
		native.PutUint32(a[60:], mode)
		native.PutUint32(a[64:], 1)
		return a
	}
	switch native.Uint32(request[4:]) {
	case fuseInit:
		out := make([]byte, 64)
		native.PutUint32(out, 7)
		native.PutUint32(out[4:], 31)
		native.PutUint32(out[20:], 1<<16) // the most that is written at once
		return slices.Concat(answer, out)
	case fuseLookup:
		entry := make([]byte, 40)
		native.PutUint64(entry, 2)
		return slices.Concat(answer, entry, attr(2, unix.S_IFREG|0o644))
	case 3: // its attributes
		node, mode := native.Uint64(request[16:]), uint32(unix.S_IFREG|0o644)
		if node == 1 {
			mode = unix.S_IFDIR | 0o755
		}
		return slices.Concat(answer, make([]byte, 16), attr(node, mode))
	case fuseOpen:
		return slices.Concat(answer, make([]byte, 16))
	case fuseFlush:
		<-may
		return answer
	case 2, 42, 36: // forgotten, or interrupted: nobody waits
		return nil
	case 18: // closed
		return answer
	}
	native.PutUint32(answer[4:], ^uint32(unix.ENOSYS)+1) // less than 0
	return answer
}

// startSlowDeath starts a process, in a session of its own, that holds the slow file.
func startSlowDeath(_, err *os.File) {
	self, _ := os.Executable()
	cmd := exec.CommandContext(context.Background(), self, modeArg, "slow-death-itself", os.Args[3])
	cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = newSession(), err, err
	if e := cmd.Start(); e != nil {
		_, _ = fmt.Fprintln(err, "open", e)
	}
}

// TestProcessThatTakesLongToEnd: what has been killed and is being taken down by the
// system is waited for; it is not reported as what could not be killed.
func TestProcessThatTakesLongToEnd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root and /dev/fuse")
	}
	b := setup(t)
	dir, may := t.TempDir(), make(chan struct{})
	slowFile(t, dir, may)
	p := b.start(t, b.spec("slow-death", dir+"/f"))
	if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if line := b.waitLine(t, "open").Message; line != "open <nil>" {
		t.Fatal(line)
	}
	go func() {
		<-p.Done()
		<-time.After(2 * proc.KillTime) // longer than a kill may take
		close(may)
	}()
	if err := p.Stop(t.Context()); err != nil {
		t.Error(phases.Whole(err))
	}
}
