package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxQueued bounds how many moved directories an emptier remembers. It finds
// the others again in its next pass.
const maxQueued = 1024

// emptier removes everything in a directory while hostile processes may still
// rename, replace and chmod what is in it. It never goes by a path: it opens
// directories relative to a descriptor, without following links or entering
// other file systems, and changes modes through descriptors alone.
//
// It never descends more than one level. A directory that it finds below that
// is moved up into the root first, so that a tree of any depth takes two or
// three descriptors, bounded memory, and one rename for each directory. "..",
// which a moved directory changes, is never used.
type emptier struct {
	root   int
	timeUp func() error // the context's error
	stem   string       // begins the names of directories that were moved up
	moved  int          // counts them
	queue  []string     // names in the root that were moved there and not yet removed
	done   int          // entries that were removed or moved
	err    error        // the first error of this pass
}

// removeTree removes a directory of which dir is open, and everything in it.
// path serves only to remove the directory itself once it is empty. It stops
// when ctx ends, and may be called again.
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

// removeTop removes an entry of the root, and the directories that were moved
// up on its account.
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

// remove removes an entry that is not a directory or an empty one, and reports
// whether it is a directory that is not empty.
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

// removeDir removes a directory of the root.
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

// moveUp moves a directory into the root. A user other than root needs to be
// allowed to write it for that.
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

// note counts a change, or keeps the first error. That somebody else was
// faster is neither.
func (e *emptier) note(err error) {
	switch {
	case err == nil:
		e.done++
	case e.err == nil && !errors.Is(err, unix.ENOENT):
		e.err = err
	}
}

// each calls f with the names in an open directory until time is up.
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

// openDir opens a directory in another one: no link, and nothing that is
// mounted there.
func openDir(dir int, name string, flags int) (int, error) {
	flags |= unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags: uint64(flags), Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS, //nolint:gosec // flags are positive
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// A kernel before 5.6, or a container that forbids the call. A mount
		// point has not come here then: to remove it was refused as EBUSY.
		return unix.Openat(dir, name, flags, 0)
	}
	return fd, err
}

// unlockFolder gives a folder in base the mode 0700.
func unlockFolder(base, name string) error {
	dir, err := os.Open(base)
	if err != nil {
		return err
	}
	defer closeQuietly(dir)
	return unlock(int(dir.Fd()), name)
}

// unlock gives a directory the mode 0700. One that its owner may not read can
// be opened only as a place, and changed only through /proc.
func unlock(dir int, name string) error {
	fd, err := openDir(dir, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}
