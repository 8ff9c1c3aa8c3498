package chain

import (
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// faultFS is a view of the machine's files that answers with errors where it is
// told to, remembers what was opened, and counts what was closed. Keys are an
// operation and a path: "lstat /x/y".
type faultFS struct {
	FS
	fail map[string]error
	// swap runs before the operation, once.
	swap map[string]func()

	// once are errors of the first time.
	once map[string]error

	ops        []string // all that was done
	opened     []string // files
	ids        []fsview.FileID
	read       int // bytes
	open, most int // handles
}

// before is called by each operation.
func (f *faultFS) before(op, path string) error {
	key := op + " " + path
	f.ops = append(f.ops, key)
	if swap := f.swap[key]; swap != nil {
		delete(f.swap, key)
		swap()
	}
	if err := f.once[key]; err != nil {
		delete(f.once, key)
		return err
	}
	return f.fail[key]
}

func (f *faultFS) OpenDir(path string) (fsview.Dir, error) {
	if err := f.before("opendir", path); err != nil {
		return nil, err
	}
	return f.wrap(path)(f.FS.OpenDir(path))
}

func (f *faultFS) RealPath(path string) (string, error) {
	if err := f.before("realpath", path); err != nil {
		return "", err
	}
	return f.FS.RealPath(path)
}

// wrap makes a directory's handle one that answers as told.
func (f *faultFS) wrap(path string) func(fsview.Dir, error) (fsview.Dir, error) {
	return func(d fsview.Dir, err error) (fsview.Dir, error) {
		if err != nil {
			return nil, err
		}
		f.open++
		f.most = max(f.most, f.open)
		return &faultDir{Dir: d, view: f, path: path}, nil
	}
}

// faultDir is a directory of a faultFS.
type faultDir struct {
	fsview.Dir
	view *faultFS
	path string
}

func (d *faultDir) OpenDir(name string) (fsview.Dir, error) {
	path := filepath.Join(d.path, name)
	if err := d.view.before("opendir", path); err != nil {
		return nil, err
	}
	return d.view.wrap(path)(d.Dir.OpenDir(name))
}

func (d *faultDir) Lstat(name string) (fsview.Info, error) {
	if err := d.view.before("lstat", filepath.Join(d.path, name)); err != nil {
		return fsview.Info{}, err
	}
	return d.Dir.Lstat(name)
}

func (d *faultDir) Open(name string) (fsview.File, error) {
	path := filepath.Join(d.path, name)
	if err := d.view.before("open", path); err != nil {
		return nil, err
	}
	file, err := d.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Info()
	if err != nil {
		return nil, err
	}
	d.view.open++
	d.view.opened, d.view.ids = append(d.view.opened, path), append(d.view.ids, info.ID)
	return &faultFile{File: file, view: d.view, path: path}, nil
}

func (d *faultDir) Close() error {
	d.view.open--
	return d.Dir.Close()
}

// faultFile is a file of a faultFS.
type faultFile struct {
	fsview.File
	view *faultFS
	path string
}

func (f *faultFile) Info() (fsview.Info, error) {
	if err := f.view.before("fstat", f.path); err != nil {
		return fsview.Info{}, err
	}
	return f.File.Info()
}

func (f *faultFile) Read(p []byte) (int, error) {
	if err := f.view.before("read", f.path); err != nil {
		return 0, err
	}
	n, err := f.File.Read(p)
	f.view.read += n
	return n, err
}

func (f *faultFile) Close() error {
	f.view.open--
	return f.File.Close()
}
