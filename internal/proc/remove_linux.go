package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxQueued bounds the moved directories that an emptier remembers; its next pass finds the others.
const maxQueued = 1024

// emptier empties a directory while hostile processes may rename, replace and chmod what is in it. It opens
// directories relative to a descriptor, never follows links or enters other file systems, and changes modes
// through descriptors.
//
// It descends one level only: directories below that are first moved up into the root, so that a tree of any
// depth takes three descriptors, bounded memory, and one rename a directory.
type emptier struct {
	root   int
	timeUp func() error // the context's error
	stem   string       // begins the names of directories that were moved up
	moved  int          // counts them
	queue  []string     // names in the root that were moved there and not yet removed
	done   int          // entries that were removed or moved
	err    error        // the first error of this pass
}

// removeTree empties an open directory and removes path. It stops when ctx ends, and may be called again.
func removeTree(ctx context.Context, dir *os.File, path string) error {
	e := &emptier{timeUp: ctx.Err, root: int(dir.Fd()), stem: rand.Text()}
	for {
		before := e.done
		if err := e.empty(); err != nil && !errors.Is(err, unix.ENOENT) { // somebody else has removed it
			return &os.PathError{Op: "remove what is in", Path: path, Err: err}
		}
		err := unix.Rmdir(path)
		if errors.Is(err, unix.ENOTDIR) { // a plugin has moved it away, and put something else there
			err = unix.Unlink(path)
		}
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if e.done == before {
			return &os.PathError{Op: "remove", Path: path, Err: err}
		}
	}
}

// empty makes passes over the root until one changes nothing.
func (e *emptier) empty() error {
	for {
		before := e.done
		e.err = nil
		_ = unix.Fchmod(e.root, 0o700) // what it prevents fails below
		err := e.each(e.root, e.removeTop)
		switch {
		case err != nil:
			return err
		case e.done == before:
			return e.err
		}
	}
}

// removeTop removes an entry of the root, and the directories moved up on its account.
func (e *emptier) removeTop(name string) {
	e.queue = append(e.queue, name)
	for len(e.queue) > 0 && e.timeUp() == nil {
		last := len(e.queue) - 1
		name, e.queue = e.queue[last], e.queue[:last]
		if e.remove(e.root, name) {
			e.removeDir(name)
		}
	}
}

// remove removes anything but a directory with entries, which it reports.
func (e *emptier) remove(dir int, name string) (full bool) {
	err := unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			return true
		}
	}
	e.note(err)
	return false
}

func (e *emptier) removeDir(name string) {
	fd, err := openDir(e.root, name, unix.O_RDONLY)
	if errors.Is(err, unix.EACCES) && unlock(e.root, name) == nil {
		fd, err = openDir(e.root, name, unix.O_RDONLY)
	}
	if err != nil {
		e.note(err)
		return
	}
	_ = unix.Fchmod(fd, 0o700)
	err = e.each(fd, func(inner string) {
		if e.remove(fd, inner) {
			e.moveUp(fd, inner)
		}
	})
	_ = unix.Close(fd)
	if err == nil {
		err = unix.Unlinkat(e.root, name, unix.AT_REMOVEDIR)
	}
	e.note(err)
}

// moveUp moves a directory into the root. Unless the user is root, it must be writable for that.
func (e *emptier) moveUp(dir int, name string) {
	e.moved++
	to := e.stem + strconv.Itoa(e.moved)
	err := unix.Renameat(dir, name, e.root, to)
	if errors.Is(err, unix.EACCES) && unlock(dir, name) == nil {
		err = unix.Renameat(dir, name, e.root, to)
	}
	if err == nil && len(e.queue) < maxQueued {
		e.queue = append(e.queue, to)
	}
	e.note(err)
}

// note counts a change or keeps the first error; ENOENT, a race lost, is neither.
func (e *emptier) note(err error) {
	switch {
	case err == nil:
		e.done++
	case e.err == nil && !errors.Is(err, unix.ENOENT):
		e.err = err
	}
}

// each calls f with the names in a directory until ctx ends.
func (e *emptier) each(dir int, f func(name string)) error {
	if _, err := unix.Seek(dir, 0, 0); err != nil {
		return err
	}
	buf := make([]byte, 8<<10)
	var names []string
	for {
		n, err := unix.Getdents(dir, buf)
		if err != nil || n <= 0 {
			return err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if err := e.timeUp(); err != nil {
				return err
			}
			f(name)
		}
	}
}

// openDir opens a directory in another one, without following links or entering mounts.
func openDir(dir int, name string, flags int) (int, error) {
	flags |= unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags: uint64(flags), Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS, //nolint:gosec // flags are positive
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// Before Linux 5.6, or in a container that forbids openat2. Mount points do not come here: their
		// removal failed with EBUSY.
		return unix.Openat(dir, name, flags, 0)
	}
	return fd, err
}

func unlockDir(base, name string) error {
	dir, err := os.Open(base)
	if err != nil {
		return err
	}
	defer closeQuietly(dir)
	return unlock(int(dir.Fd()), name)
}

// unlock gives a directory the mode 0700. One that its owner may not read can be changed only through /proc.
func unlock(dir int, name string) error {
	fd, err := openDir(dir, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}
