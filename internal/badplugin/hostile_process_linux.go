package badplugin

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/sdk"
)

// processAttacks use up what a process can, or stay when they should go.
func processAttacks() map[string]func(*Program) error {
	attack := func(do func(p *Program) error) func(*Program) error {
		return func(p *Program) error {
			return p.serveAttack(func(context.Context, *sdk.Call) {
				if err := do(p); err != nil {
					p.did("failed " + err.Error())
					return
				}
				p.did("done")
			})
		}
	}
	all := memoryAttacks()
	maps.Copy(all, map[string]func(*Program) error{
		"process-deaf-to-term": func(p *Program) error {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			return errors.Join(p.serveAttack(func(context.Context, *sdk.Call) { p.did("done") }), block(p))
		},
		"process-stops-itself": func(p *Program) error {
			return p.serveAttack(func(context.Context, *sdk.Call) {
				p.did("done")
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			})
		},
		"process-kills-its-group": func(p *Program) error {
			return p.serveAttack(func(context.Context, *sdk.Call) {
				p.did("done")
				_ = syscall.Kill(0, syscall.SIGKILL)
			})
		},
		"process-leaves-group": func(p *Program) error { return p.leavesGroup((*Program).groupOfChild) },
		"process-joins-host": func(p *Program) error {
			return p.leavesGroup(func(*Program) (int, error) { return syscall.Getpgid(os.Getppid()) })
		},
		"process-siblings":      attack(siblings),
		"process-many-children": attack((*Program).manyChildren),
		"process-sessions":      attack(func(p *Program) error { return p.daemon("sleeper", false) }),
		"process-daemon":        attack(func(p *Program) error { return p.daemon("hostile", true, "process-spawn") }),
		"process-forged-mark":   attack((*Program).forgedMark),
		"process-threads":       attack(func(*Program) error { return spin(100, 500*time.Millisecond) }),
		"process-timers":        attack(manyTimers),
		"process-descriptors":   attack(func(*Program) error { return openAll() }),
		"process-memory":        func(p *Program) error { return p.holdMemory(p.anonymous) },
		"process-memfd":         func(p *Program) error { return p.holdMemory(memfd) },
		"process-shared-memory": func(p *Program) error { return p.holdMemory(sharedMemory) },
		"process-core": attack(func(p *Program) error {
			_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
			p.did("done")
			return unix.Kill(os.Getpid(), unix.SIGABRT)
		}),
		"process-logs-binary": attack(func(p *Program) error { return p.log(strings.Repeat("\x00\xff\xfe\x1b", 16<<10), 100) }),
		"process-logs-lines":  attack(func(p *Program) error { return p.log(strings.Repeat("\n", 64<<10), 100) }),
		"process-logs-ansi":   attack(func(p *Program) error { return p.log("\x1b[2J\x1b]0;title\x07\u009b31m\n", 3000) }),
		// What a daemon starts as: it starts a sleeper and ends.
		"process-spawn": func(p *Program) error {
			defer p.Exit(0)
			return p.daemon("sleeper", true)
		},
	})
	return all
}

// leavesGroup serves, leaves the group that it leads for another one when it is called,
// and does not end when it is asked to.
func (p *Program) leavesGroup(another func(*Program) (int, error)) error {
	signal.Ignore(syscall.SIGTERM)
	return errors.Join(p.serveAttack(func(context.Context, *sdk.Call) {
		group, err := another(p)
		if err = errors.Join(err, syscall.Setpgid(0, group)); err != nil {
			p.did("failed " + err.Error())
			return
		}
		p.did("done")
	}), block(p))
}

// groupOfChild starts a child that leads a group.
func (p *Program) groupOfChild() (int, error) {
	cmd := p.child("sleeper")
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// siblings starts processes that end at once, as children of the host.
func siblings(*Program) error {
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
func (p *Program) manyChildren() error {
	var err error
	for i := 0; i < 60 && err == nil; i++ {
		err = p.child("sleeper").Start()
	}
	return ignored(err) // that is the limit
}

// daemon starts a child in a session of its own that holds standard error, without
// the host's mark if it hides.
func (p *Program) daemon(mode string, hides bool, args ...string) error {
	cmd := p.child(mode, args...)
	cmd.SysProcAttr.Setsid = true
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	if hides {
		cmd.Env = environWithout("GRAPNEL_MARK")
	}
	if err := cmd.Start(); err != nil || mode == "sleeper" {
		return err
	}
	return cmd.Wait()
}

// forgedMark starts a child that bears the mark of another host.
func (p *Program) forgedMark() error {
	cmd := p.child("sleeper")
	cmd.SysProcAttr.Setsid = true
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
func manyTimers(*Program) error {
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
func (p *Program) holdMemory(take func() error) error {
	return p.serveAttack(func(ctx context.Context, _ *sdk.Call) {
		p.did("done")
		if err := take(); err == nil {
			_ = keep(ctx, nil)
		}
	})
}

// anonymous takes memory of its own.
func (p *Program) anonymous() error {
	var all [][]byte
	for range heldMemory >> 20 {
		all = append(all, []byte(strings.Repeat("m", 1<<20)))
	}
	return keep(context.Background(), all)
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
func (p *Program) log(text string, times int) error {
	p.did("done")
	for range times {
		if _, err := p.stderr.WriteString(text); err != nil {
			return err
		}
	}
	return nil
}
