package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
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
	if run, ok := hoards()[way]; ok {
		_, _ = fmt.Fprintln(err, "hoard", run())
		block()
	}
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

// hoards are ways to hold memory without a descriptor.
func hoards() map[string]func() error {
	return map[string]func() error{
		"shared pages that nobody has resident": func() error {
			data, err := unix.Mmap(-1, 0, hoardSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON|unix.MAP_POPULATE)
			if err != nil {
				return err
			}
			return unix.Madvise(data, unix.MADV_DONTNEED)
		},
		"page tables": func() error {
			const pages = hoardSize / 4096
			const each = 2 << 20 // is what one page table is for
			start, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, pages*each, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE, ^uintptr(0), 0)
			if errno != 0 {
				return errno
			}
			if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, pages*each, unix.MADV_NOHUGEPAGE); errno != 0 {
				return errno
			}
			for i := range uintptr(pages) {
				if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start+i*each, 4096, unix.MADV_POPULATE_READ); errno != 0 {
					return errno
				}
			}
			return nil
		},
		"an orphan": func() error { return holdApart(0, true) },
		"a sibling": func() error { return holdApart(unix.CLONE_PARENT, false) },
	}
}

// holdApart has a process hold memory that is not among the children of this one: it
// was begun as a child of the host, or by a child that has ended.
func holdApart(flags uintptr, orphan bool) error {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return err
	}
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|flags, 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 { // only this thread exists here
		if orphan {
			if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
		_, _, _ = unix.RawSyscall6(unix.SYS_MMAP, 0, hoardSize, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE, ^uintptr(0), 0)
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(pipe[1]), 0, 0)
		for {
			_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	if err := unix.Close(pipe[1]); err != nil {
		return err
	}
	_, err := unix.Read(pipe[0], make([]byte, 1)) // until it has closed its end
	return err
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
		{"shared pages that nobody has resident", sandbox.T0, true},
		{"shared pages that nobody has resident", sandbox.T1, true},
		{"page tables", sandbox.T0, true},
		{"page tables", sandbox.T1, true},
		{"an orphan", sandbox.T0, true},
		{"an orphan", sandbox.T1, true},
		{"a sibling", sandbox.T0, true},
		{"a sibling", sandbox.T1, true},
	} {
		t.Run(tt.way+" in "+tt.tier.String(), func(t *testing.T) {
			if tt.tier > sandbox.T0 {
				needT1(t)
				if tt.way != "child" && !proc.Long() {
					t.Skip("it holds as much in T0; " + proc.LongTests + "=1 runs it")
				}
			}
			if strings.HasPrefix(tt.way, "shared") && os.Geteuid() != 0 {
				t.Skip("only root sees how much of a shared mapping there is")
			}
			b := setup(t)
			spec := b.spec("hoard", tt.way)
			limit := int64(hoardLimit)
			if !tt.killed {
				limit = roomyLimit
			}
			spec.Sandbox = proc.Sandbox{Tier: tt.tier, Policy: sandbox.Policy{Read: []string{"/"}, Limits: sandbox.Limits{Memory: uint64(limit)}}}
			p := b.act(t, spec)
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
