package skillset

import (
	"io/fs"
	"os"
	"path/filepath"
)

// OS is the file system of the machine, by the standard library's os.Root.
type OS struct{}

var _ FS = OS{}

// RealPath implements [FS].
func (OS) RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// Stat implements [FS].
func (OS) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// OpenRoot implements [FS].
func (OS) OpenRoot(path string) (Root, error) { return opened(os.OpenRoot(path)) }

// osRoot is an os.Root whose files are looked at before they are opened.
type osRoot struct{ root *os.Root }

func opened(root *os.Root, err error) (Root, error) {
	if err != nil {
		return nil, err
	}
	return osRoot{root}, nil
}

// OpenRoot implements [Root].
func (r osRoot) OpenRoot(name string) (Root, error) { return opened(r.root.OpenRoot(name)) }

// Stat implements [Root].
func (r osRoot) Stat(name string) (fs.FileInfo, error) { return r.root.Stat(name) }

// Open implements [Root]. What is open in the end may be another file than the
// one that was looked at, so it is looked at again.
func (r osRoot) Open(name string) (fs.File, error) {
	before, err := r.root.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !before.Mode().IsRegular() && !before.IsDir():
		return nil, ErrNotRegular
	}
	f, err := r.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		_ = f.Close() // nothing was read
		return nil, errChanged
	}
	return f, nil
}

// Close implements [Root].
func (r osRoot) Close() error { return r.root.Close() }
