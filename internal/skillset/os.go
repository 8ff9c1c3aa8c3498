package skillset

import (
	"errors"
	"os"
	"syscall"
)

// root is an open directory that no name and no link leads out of. Names are relative paths of the system.
type root struct {
	*os.Root
	opening func(name string) // of tests: is called between the look at a file and its opening; may be nil
}

// openRoot opens the directory at an absolute path, links followed. It does not wait for a pipe, which has no "/.".
func openRoot(path string, opening func(string)) (*root, error) {
	r, err := os.OpenRoot(path + "/.")
	if err != nil {
		return nil, err
	}
	return &root{r, opening}, nil
}

// OpenRoot opens a directory below this one, which is a bound in turn.
func (r *root) OpenRoot(name string) (*root, error) {
	below, err := r.Root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &root{below, r.opening}, nil
}

// Open opens a regular file, or a directory for listing; [errNotRegular] for anything else. It never blocks: the
// file is looked at before, and again when it is open, since it may be another one.
func (r *root) Open(name string) (*os.File, error) {
	before, err := r.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !before.Mode().IsRegular() && !before.IsDir():
		return nil, errNotRegular
	}
	if r.opening != nil {
		r.opening(name)
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

var (
	// errNotRegular is the error for a fifo, socket or device, and for anything but a directory where one is wanted.
	errNotRegular = errors.New("is not a file or directory of the kind that is wanted here")
	errChanged    = errors.New("changed while it was opened")
)
