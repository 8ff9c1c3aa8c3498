package proc_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// twinSize is what the processes of the mode "twins" share.
const twinSize = 128 << 20

// twins shares its memory with three children that have nothing of their own.
func twins(_, err *os.File) {
	debug.SetGCPercent(-1)
	shared := bytes.Repeat([]byte{1}, twinSize)
	for range 3 {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			panic(errno)
		}
		if pid == 0 { // only this thread exists here
			for {
				_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
	}
	_, _ = fmt.Fprintln(err, "twins", len(shared))
	block()
}

// TestEnforceMemory: what is shared counts once where it matters, who holds too
// much is killed for it with all its descendants, and its end says so.
func TestEnforceMemory(t *testing.T) {
	skipShort(t)
	for _, tt := range []struct {
		name   string
		limit  uint64
		killed bool
	}{
		{"no limit", 0, false},
		{"within, what is shared counted once", 4 * twinSize, false},
		{"beyond", twinSize / 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			spec := b.spec("twins")
			spec.Sandbox.Policy.Limits.Memory = tt.limit
			var spawned *proc.Process
			spec.Spawned = func(p *proc.Process) { spawned = p }
			p := b.start(t, spec)
			if spawned != p || p.EnforceMemory() {
				t.Errorf("spawned %p, want %p; killed before it was measured", spawned, p)
			}
			if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			b.waitLine(t, "twins")
			got, _ := proc.Measure([]*proc.Process{p})
			if over := got[0].RSS > 4*twinSize; got[0].Processes != 4 || over == (tt.limit > 0) {
				t.Errorf("usage %+v", got[0])
			}
			if killed := p.EnforceMemory(); killed != tt.killed {
				t.Fatalf("killed %v, want %v; usage %+v", killed, tt.killed, got[0])
			}
			if !tt.killed {
				return
			}
			exit := p.Exit()
			if !exit.OOM || exit.Asked || exit.Held != got[0].RSS || exit.Limit != int64(tt.limit) {
				t.Errorf("exit %+v", exit)
			}
			if err := exit.Err("p"); err.Code != phases.CauseOOM || !strings.Contains(err.Message, "(its limit is 64 MiB)") {
				t.Errorf("error %v", err)
			}
		})
	}
}
