package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/sandbox"
)

const (
	hoardSize  = 300 << 20
	hoardLimit = 64 << 20
	// roomyLimit is enough for what the mode "mapped" holds counted once.
	mappedSize = 96 << 20
	roomyLimit = 160 << 20
)

// hoard holds memory that is mapped nowhere, in the way that its argument names.
func hoard(_, err *os.File) {
	way := os.Args[3]
	fd, e := memoryFile(way)
	if e == nil && fd >= 0 {
		size := int64(hoardSize)
		if way == "mapped" {
			size = mappedSize
		}
		e = unix.Fallocate(fd, 0, 0, size)
	}
	switch {
	case e != nil:
	case way == "child": // holds it alone
		var self string
		self, e = os.Executable()
		cmd := exec.CommandContext(context.Background(), self, modeArg, "sleeper")
		cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{os.NewFile(uintptr(fd), "hoard")}, newSession()
		if e == nil {
			e = cmd.Start()
		}
		_ = cmd.ExtraFiles[0].Close()
	case way == "mapped":
		var mapped []byte
		mapped, e = unix.Mmap(fd, 0, mappedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if e == nil {
			mapped[0] = 1
		}
	}
	_, _ = fmt.Fprintln(err, "hoard", e)
	block()
}

// memoryFile makes a file in memory, or a System V segment with its contents.
func memoryFile(way string) (int, error) {
	switch way {
	case "deleted file":
		f, err := os.CreateTemp("/dev/shm", "hoard")
		if err != nil {
			return -1, err
		}
		return int(f.Fd()), os.Remove(f.Name())
	case "System V":
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, hoardSize, 0o600)
		if err != nil {
			return -1, err
		}
		data, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return -1, err
		}
		for i := 0; i < len(data); i += os.Getpagesize() {
			data[i] = 1
		}
		return -1, unix.SysvShmDetach(data) // the test removes it
	}
	return unix.MemfdCreate("hoard", 0)
}

// TestHoardedMemory: memory that a plugin holds but has not mapped counts
// against its limit.
func TestHoardedMemory(t *testing.T) {
	for _, tt := range []struct {
		way    string
		tier   sandbox.Tier
		killed bool
	}{
		{"memfd", sandbox.T0, true},
		{"memfd", sandbox.T1, true},
		{"child", sandbox.T0, true},
		{"child", sandbox.T1, true},
		{"deleted file", sandbox.T0, true},
		{"System V", sandbox.T0, true},
		{"mapped", sandbox.T0, false}, // counted once
	} {
		t.Run(tt.way+" in "+tt.tier.String(), func(t *testing.T) {
			if tt.tier > sandbox.T0 {
				needT1(t)
			}
			b := setup(t)
			spec := b.spec("hoard", tt.way)
			limit := int64(hoardLimit)
			if !tt.killed {
				limit = roomyLimit
			}
			spec.Sandbox = proc.Sandbox{Tier: tt.tier, Policy: sandbox.Policy{Read: []string{"/"}, Limits: sandbox.Limits{Memory: uint64(limit)}}}
			p := b.start(t, spec)
			if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			if line := b.waitLine(t, "hoard").Message; !strings.HasSuffix(line, "<nil>") {
				t.Skip(line)
			}
			got, _ := proc.Measure([]*proc.Process{p})
			if killed := p.EnforceMemory(); killed != tt.killed {
				t.Errorf("killed %v, want %v; usage %+v", killed, tt.killed, got[0])
			}
			removeSegments(t, p.PID())
			if tt.killed && (got[0].RSS < hoardSize || got[0].RSS > hoardSize+hoardLimit) {
				t.Errorf("usage %+v", got[0])
			}
			if !tt.killed && got[0].RSS < mappedSize {
				t.Errorf("usage %+v", got[0])
			}
		})
	}
}

// removeSegments removes the System V segments that a process has made.
func removeSegments(t *testing.T, pid int) {
	t.Helper()

	data, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Log(err)
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == strconv.Itoa(pid) {
			if id, err := strconv.Atoi(fields[1]); err == nil {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
		}
	}
}
