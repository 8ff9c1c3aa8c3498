package badplugin

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/sdk"
)

// memoryAttacks hold memory where nobody looks for it.
func memoryAttacks() map[string]func(*Program) error {
	return map[string]func(*Program) error{
		"process-page-tables":    func(p *Program) error { return p.holdMemory(pageTables) },
		"process-shared-dropped": func(p *Program) error { return p.holdMemory(sharedDropped) },
		"process-memory-orphan":  func(p *Program) error { return p.holdMemory(func() error { return holdApart(0, true) }) },
		"process-memory-sibling": func(p *Program) error {
			return p.holdMemory(func() error { return holdApart(unix.CLONE_PARENT, false) })
		},
		"process-memory-children": func(p *Program) error { return p.holdMemory(manyHolders) },
		"reach-lease": func(p *Program) error {
			return p.serveAttack(func(context.Context, *sdk.Call) { p.attempt(lease()) })
		},
	}
}

// lease takes a lease on a file of its own: others could not open it.
func lease() error {
	f, err := os.Create(filepath.Join(filepath.Dir(socket()), "leased"))
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
		if err := begin(0, func() {
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
	return begin(flags, func() {
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

// begin runs a function in a new process, in which nothing of Go works but calls of the
// system.
func begin(flags uintptr, child func()) error {
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
