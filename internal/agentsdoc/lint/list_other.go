//go:build !linux

package lint

import (
	"io/fs"
	"os"
)

// directory is an open directory. os.Root refuses a link in it that leads out of it.
type directory struct{ root *os.Root }

func openTop(path string) (directory, error) {
	root, err := os.OpenRoot(path)
	return directory{root}, err
}

func (d directory) child(name string) (directory, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return directory{}, err
	}
	if !before.IsDir() {
		return directory{}, errReplaced
	}
	child, err := d.root.OpenRoot(name)
	if err != nil {
		return directory{}, err
	}
	if after, err := child.Stat("."); err != nil || !os.SameFile(before, after) {
		_ = child.Close()
		return directory{}, errReplaced
	}
	return directory{child}, nil
}

func (d directory) read() ([]fs.DirEntry, error) {
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.ReadDir(-1)
}

func (d directory) close() { _ = d.root.Close() }
