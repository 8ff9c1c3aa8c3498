package fsview

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Portable is the file system of the machine by os.Root. It keeps the same promises as [OS] on every system, at a
// higher price.
type Portable struct{}

var _ FS = Portable{}

// OpenDir implements [FS].
func (Portable) OpenDir(path string) (Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return rootDir{root}, nil
}

// RealPath implements [FS].
func (Portable) RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// rootDir is a directory as an os.Root, which follows links as long as they stay below it; each method therefore
// looks at what it is about to open.
type rootDir struct{ root *os.Root }

func (d rootDir) OpenDir(name string) (Dir, error) {
	before, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case before.Mode()&fs.ModeSymlink != 0:
		return nil, ErrLink
	case !before.IsDir():
		return nil, syscall.ENOTDIR
	}
	child, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if after, err := child.Stat("."); err != nil || !os.SameFile(before, after) {
		_ = child.Close()
		return nil, ErrLink // it became one in between
	}
	return rootDir{child}, nil
}

func (d rootDir) Lstat(name string) (Info, error) { return stdInfo(d.root.Lstat(name)) }

func (d rootDir) Open(name string) (File, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, syscall.EINVAL
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		_ = f.Close()
		return nil, ErrLink
	}
	return rootFile{f}, nil
}

func (d rootDir) Entries(most int) ([]fs.DirEntry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	return entries(f, most)
}

func (d rootDir) Info() (Info, error) { return stdInfo(d.root.Stat(".")) }

func (d rootDir) Close() error { return d.root.Close() }

type rootFile struct{ *os.File }

func (f rootFile) Info() (Info, error) { return stdInfo(f.Stat()) }

func stdInfo(fi os.FileInfo, err error) (Info, error) {
	if err != nil {
		return Info{}, err
	}
	return Info{
		Mode:    fi.Mode().Type(),
		Size:    fi.Size(),
		MTimeMs: fi.ModTime().UnixMilli(),
		ID:      stdID(fi),
		std:     fi,
	}, nil
}
