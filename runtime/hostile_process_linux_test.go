package runtime_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/sdk"
)

// processAttacks use up what a process can, or stay when they should go.
func processAttacks() map[string]func(*hostile) error {
	all := memoryAttacks()
	maps.Copy(all, map[string]func(*hostile) error{
		"process-deaf-to-term": func(p *hostile) error {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			return errors.Join(p.serveAttack(func(context.Context, *sdk.Call) { p.did("done") }), p.Block())
		},
		"process-stops-itself": func(p *hostile) error {
			return p.serveAttack(func(context.Context, *sdk.Call) {
				p.did("done")
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			})
		},
		"process-kills-its-group": func(p *hostile) error {
			return p.serveAttack(func(context.Context, *sdk.Call) {
				p.did("done")
				_ = syscall.Kill(0, syscall.SIGKILL)
			})
		},
		"process-leaves-group": func(p *hostile) error { return p.leavesGroup((*hostile).groupOfChild) },
		"process-joins-host": func(p *hostile) error {
			return p.leavesGroup(func(*hostile) (int, error) { return syscall.Getpgid(os.Getppid()) })
		},
		"process-siblings":      attack(siblings),
		"process-many-children": attack((*hostile).manyChildren),
		"process-sessions":      attack(func(p *hostile) error { return p.daemon("sleeper", false) }),
		"process-daemon":        attack(func(p *hostile) error { return p.daemon("hostile", true, "process-spawn") }),
		"process-forged-mark":   attack((*hostile).forgedMark),
		"process-threads":       attack(func(*hostile) error { return spin(100, 500*time.Millisecond) }),
		"process-timers":        attack(manyTimers),
		"process-descriptors":   attack(func(*hostile) error { return openAll() }),
		"process-memory":        func(p *hostile) error { return p.holdMemory(p.anonymous) },
		"process-memfd":         func(p *hostile) error { return p.holdMemory(memfd) },
		"process-shared-memory": func(p *hostile) error { return p.holdMemory(sharedMemory) },
		"process-core": attack(func(p *hostile) error {
			_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
			p.did("done")
			return unix.Kill(os.Getpid(), unix.SIGABRT)
		}),
		"process-logs-binary": attack(func(p *hostile) error { return p.log(strings.Repeat("\x00\xff\xfe\x1b", 16<<10), 100) }),
		"process-logs-lines":  attack(func(p *hostile) error { return p.log(strings.Repeat("\n", 64<<10), 100) }),
		"process-logs-ansi":   attack(func(p *hostile) error { return p.log("\x1b[2J\x1b]0;title\x07\u009b31m\n", 3000) }),
		// What a daemon starts as: it starts a sleeper and ends.
		"process-spawn": func(p *hostile) error {
			defer os.Exit(0)
			return p.daemon("sleeper", true)
		},
	})
	return all
}

// leavesGroup serves, leaves the group that it leads for another one when it is called,
// and does not end when it is asked to.
func (p *hostile) leavesGroup(another func(*hostile) (int, error)) error {
	signal.Ignore(syscall.SIGTERM)
	return errors.Join(attack(func(p *hostile) error {
		group, err := another(p)
		return errors.Join(err, syscall.Setpgid(0, group))
	})(p), p.Block())
}

// groupOfChild starts a child that leads a group.
func (p *hostile) groupOfChild() (int, error) {
	cmd := p.Child("sleeper")
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// siblings starts processes that end at once, as children of the host.
func siblings(*hostile) error {
	for range 100 {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|unix.CLONE_PARENT, 0, 0, 0, 0, 0)
		if errno != 0 {
			return ignored(errno)
		}
		if pid == 0 { // only this thread exists here
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return nil
}

// manyChildren starts a small fork bomb.
func (p *hostile) manyChildren() error {
	var err error
	for i := 0; i < 60 && err == nil; i++ {
		err = p.Child("sleeper").Start()
	}
	return ignored(err) // that is the limit
}

// daemon starts a child in a session of its own that holds standard error, without
// the host's mark if it hides.
func (p *hostile) daemon(mode string, hides bool, args ...string) error {
	cmd := p.Apart(mode, args...)
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	if hides {
		cmd.Env = environWithout("GRAPNEL_MARK")
	}
	if err := cmd.Start(); err != nil || mode == "sleeper" {
		return err
	}
	return cmd.Wait()
}

// forgedMark starts a child that bears the mark of another host.
func (p *hostile) forgedMark() error {
	cmd := p.Apart("sleeper")
	cmd.Env = append(environWithout("GRAPNEL_MARK"), "GRAPNEL_MARK=1.1.1")
	return cmd.Start()
}

// spin keeps many threads busy.
func spin(threads int, d time.Duration) error {
	end := time.Now().Add(d)
	for range threads {
		go func() {
			runtime.LockOSThread()
			for time.Now().Before(end) {
			}
		}()
	}
	return nil
}

// manyTimers makes many timers that fire all the time.
func manyTimers(*hostile) error {
	for range 2000 {
		go func() {
			t := time.NewTicker(time.Millisecond)
			for range 200 {
				<-t.C
			}
			t.Stop()
		}()
	}
	return nil
}

// openAll opens files until the system refuses.
func openAll() error {
	var err error
	for i := 0; i < 5000 && err == nil; i++ {
		_, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	return ignored(err) // that is the limit
}

// heldMemory is what the memory attacks take: more than their limit.
const heldMemory = 400 << 20

// holdMemory serves, and takes memory when it is called.
func (p *hostile) holdMemory(take func() error) error {
	return p.serveAttack(func(ctx context.Context, _ *sdk.Call) {
		p.did("done")
		if err := take(); err == nil {
			_ = keepMemory(ctx, nil)
		}
	})
}

// anonymous takes memory of its own.
func (p *hostile) anonymous() error {
	var all [][]byte
	for range heldMemory >> 20 {
		all = append(all, []byte(strings.Repeat("m", 1<<20)))
	}
	return keepMemory(context.Background(), all)
}

// memfd takes memory as a file.
func memfd() error {
	fd, err := unix.MemfdCreate("hostile", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	chunk := []byte(strings.Repeat("m", 1<<20))
	for range heldMemory >> 20 {
		if _, err := unix.Write(fd, chunk); err != nil {
			return err
		}
	}
	return nil
}

// sharedMemory takes memory that others could share.
func sharedMemory() error {
	data, err := unix.Mmap(-1, 0, heldMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
	return unix.Munmap(data[:4096])
}

// log writes to standard error again and again. It reports that before: few of the
// lines come through.
func (p *hostile) log(text string, times int) error {
	p.did("done")
	for range times {
		if _, err := p.Stderr.WriteString(text); err != nil {
			return err
		}
	}
	return nil
}

// memoryAttacks hold memory where nobody looks for it.
func memoryAttacks() map[string]func(*hostile) error {
	return map[string]func(*hostile) error{
		"process-page-tables":    func(p *hostile) error { return p.holdMemory(pageTables) },
		"process-shared-dropped": func(p *hostile) error { return p.holdMemory(sharedDropped) },
		"process-memory-orphan":  func(p *hostile) error { return p.holdMemory(func() error { return holdApart(0, true) }) },
		"process-memory-sibling": func(p *hostile) error {
			return p.holdMemory(func() error { return holdApart(unix.CLONE_PARENT, false) })
		},
		"process-memory-children": func(p *hostile) error { return p.holdMemory(manyHolders) },
		"reach-lease": func(p *hostile) error {
			return p.serveAttack(func(context.Context, *sdk.Call) { p.attempt(lease()) })
		},
	}
}

// lease takes a lease on a file of its own: others could not open it.
func lease() error {
	f, err := os.Create(filepath.Join(filepath.Dir(socketPath()), "leased"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err
}

// pageTables reads one byte of each 2 MiB: a page table for each, and no memory.
func pageTables() error {
	const each = 2 << 20
	const size = heldMemory / 4096 * each
	start, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE, ^uintptr(0), 0)
	if errno != 0 {
		return errno
	}
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, size, unix.MADV_NOHUGEPAGE); errno != 0 {
		return errno
	}
	for at := uintptr(0); at < size; at += each {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start+at, 4096, unix.MADV_POPULATE_READ); errno != 0 {
			return errno
		}
	}
	return nil
}

// sharedDropped fills shared memory, and has none of it resident.
func sharedDropped() error {
	data, err := unix.Mmap(-1, 0, heldMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	return unix.Madvise(data, unix.MADV_DONTNEED)
}

// manyHolders holds memory in many children with many descriptors.
func manyHolders() error {
	const children, descriptors = 16, 4096
	for range children {
		if err := inClone(0, func() {
			for range descriptors {
				if _, _, errno := unix.RawSyscall(unix.SYS_EVENTFD2, 0, 0, 0); errno != 0 {
					break
				}
			}
			holdInClone(heldMemory / children)
		}); err != nil {
			return err
		}
	}
	return nil
}

// holdApart has a process hold memory that is not among the children of this one: it
// was begun as a child of the host, or by a child that has ended.
func holdApart(flags uintptr, orphan bool) error {
	return inClone(flags, func() {
		if orphan {
			if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
				return
			}
		}
		holdInClone(heldMemory)
	})
}

// holdInClone holds memory in a process that has one thread and no Go runtime.
func holdInClone(size uintptr) {
	_, _, errno := unix.RawSyscall6(unix.SYS_MMAP, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE, ^uintptr(0), 0)
	for errno == 0 { // for ever: nothing interrupts it
		_, _, errno = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// inClone runs a function in a new process, in which nothing of Go works but calls of the
// system.
func inClone(flags uintptr, child func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|flags, 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		return errno
	case pid == 0:
		child()
		_, _, errno = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		return errno
	}
	return nil
}
