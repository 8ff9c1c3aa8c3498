package skillset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OS is the machine's file system, by the standard library's os.Root.
type OS struct{}

var _ FS = OS{}

// RealPath implements [FS].
func (OS) RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// Stat implements [FS].
func (OS) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// OpenRoot implements [FS]. It does not wait for a pipe, which has no "/.".
func (OS) OpenRoot(path string) (Root, error) { return opened(os.OpenRoot(path + "/.")) }

// osRoot is an os.Root that stats files before opening them.
type osRoot struct{ *os.Root }

func opened(root *os.Root, err error) (Root, error) {
	if err != nil {
		return nil, err
	}
	return osRoot{root}, nil
}

func (r osRoot) OpenRoot(name string) (Root, error) { return opened(r.Root.OpenRoot(name)) }

// Open implements [Root]. The opened file may be another one, so it is checked again.
func (r osRoot) Open(name string) (fs.File, error) {
	before, err := r.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !before.Mode().IsRegular() && !before.IsDir():
		return nil, ErrNotRegular
	}
	f, err := r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		_ = f.Close() // nothing was read
		return nil, errChanged
	}
	return f, nil
}

// FS is the read-only view of a file system that [Resolve] works on. Errors are fs.ErrNotExist, fs.ErrPermission,
// [ErrNotRegular], or failures to read.
type FS interface {
	// RealPath resolves all links of an absolute path. It opens nothing.
	RealPath(path string) (string, error)
	// Stat describes what an absolute path leads to, links followed. It opens nothing.
	Stat(path string) (fs.FileInfo, error)
	// OpenRoot opens the directory at an absolute path, links followed.
	OpenRoot(path string) (Root, error)
}

// Root is an open directory that no name and no link leads out of. Names are relative paths of the system.
type Root interface {
	// OpenRoot opens a directory below this one, which is a bound in turn.
	OpenRoot(name string) (Root, error)
	// Open opens a regular file, or a directory for listing; [ErrNotRegular] for anything else. It never blocks.
	Open(name string) (fs.File, error)
	Close() error
}

// ErrNotRegular is the error for a fifo, socket or device, and for anything but a directory where one is wanted.
var ErrNotRegular = errors.New("is not a file or directory of the kind that is wanted here")

var errChanged = errors.New("changed while it was opened")
