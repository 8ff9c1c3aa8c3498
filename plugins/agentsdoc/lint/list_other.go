//go:build !linux

package lint

import (
	"io/fs"
	"os"
)

// folder is an open folder, by the standard library. A link in it that leads out
// of it is refused by os.Root.
type folder struct{ root *os.Root }

// openTop opens the folder at a path, links followed.
func openTop(path string) (folder, error) {
	root, err := os.OpenRoot(path)
	return folder{root}, err
}

// child opens a folder in this one.
func (f folder) child(name string) (folder, error) {
	before, err := f.root.Lstat(name)
	if err != nil {
		return folder{}, err
	}
	if !before.IsDir() {
		return folder{}, errReplaced
	}
	child, err := f.root.OpenRoot(name)
	if err != nil {
		return folder{}, err
	}
	if after, err := child.Stat("."); err != nil || !os.SameFile(before, after) {
		_ = child.Close()
		return folder{}, errReplaced
	}
	return folder{child}, nil
}

// close closes it. There is nothing to do about a failure.
func (f folder) close() { _ = f.root.Close() }

// kind asks for the kind of an entry.
func (f folder) kind(name string) entryKind {
	if info, err := f.root.Lstat(name); err == nil && info.IsDir() {
		return folderEntry
	}
	return otherEntry
}

// each calls see for each entry.
func (f folder) each(_ *lister, see func(name []byte, kind entryKind)) error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(-1)
	for _, e := range entries {
		kind := otherEntry
		switch {
		case e.IsDir():
			kind = folderEntry
		case e.Type()&fs.ModeIrregular != 0:
			kind = unknownEntry
		}
		see([]byte(e.Name()), kind)
	}
	return err
}
