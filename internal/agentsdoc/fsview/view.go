// Package fsview is the view of a file system that package chain works on, and the machine's own: [OS] by the fastest
// way of its system, [Portable] by the standard library alone.
//
// It grants the least that is needed to find and read a few files: directories are opened from their parent's handle,
// nothing is written, no unresolved link is followed, and nothing blocks. Tests and sandboxing hosts replace it.
package fsview

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// FS is a view of a file system. Errors are distinguished by fs.ErrNotExist, fs.ErrPermission and [ErrLink]; all
// others count as failures to read.
type FS interface {
	// OpenDir opens the directory at an absolute path, links followed.
	OpenDir(path string) (Dir, error)
	// RealPath resolves all links of an absolute path. It opens nothing.
	RealPath(path string) (string, error)
}

// Dir is an open directory. A name is always one element of a path, and a link of that name is never followed.
type Dir interface {
	// OpenDir opens a directory in this one; [ErrLink] if the name is a link's.
	OpenDir(name string) (Dir, error)
	// Lstat describes a name.
	Lstat(name string) (Info, error)
	// Open opens a file for reading. It must never block.
	Open(name string) (File, error)
	// Entries are the entries of it, sorted by name, without "." and ".."; of more than most, any so many, and all if
	// most is below 0. It is for directories whose files have no fixed names.
	Entries(most int) ([]fs.DirEntry, error)
	// Info describes the directory itself.
	Info() (Info, error)
	// Close releases the directory. Called once.
	Close() error
}

// File is an open file.
type File interface {
	io.Reader
	// Info describes the open file.
	Info() (Info, error)
	// Close releases the file. Called once.
	Close() error
}

// ErrLink is the error for a symbolic link where a directory was expected.
var ErrLink = errors.New("is a symbolic link")

// Info describes a file.
type Info struct {
	Mode    fs.FileMode // read for its type only
	Size    int64
	MTimeMs int64  // modification time in milliseconds since 1970
	ID      FileID // tells files apart; the zero value if a system has none

	std fs.FileInfo // replaces ID for [os.SameFile]
}

// FileID is the device and number of a file.
type FileID struct {
	Dev, Ino uint64
}

// Same reports whether two descriptions are of one file, as far as is known.
func (i Info) Same(other Info) bool {
	if i.ID != (FileID{}) || other.ID != (FileID{}) {
		return i.ID == other.ID
	}
	return i.std != nil && other.std != nil && os.SameFile(i.std, other.std)
}

// IsLink reports whether the file is a symbolic link.
func (i Info) IsLink() bool { return i.Mode.Type() == fs.ModeSymlink }

// ReadText reads up to most bytes of a regular file in a directory, without ever blocking; nothing after an error.
func ReadText(dir Dir, name string, most int64) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Info()
	if err == nil && !info.Mode.IsRegular() {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", err
	}
	return string(data), nil
}

// Cause is the innermost text of an error, without the path.
func Cause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// MaxNames bounds a list of names.
const MaxNames = 1 << 12

// Names are the names in a directory, sorted; of more than [MaxNames], any so many.
func Names(dir Dir) ([]string, error) {
	list, err := dir.Entries(MaxNames)
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, err
}

// entries lists a directory that is open for reading, and closes it.
func entries(f *os.File, most int) ([]fs.DirEntry, error) {
	defer func() { _ = f.Close() }()
	list, err := f.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// OS is the file system of the machine. On Linux it uses system calls relative to a directory's descriptor; elsewhere
// it is os.Root.
type OS struct{}

var _ FS = OS{}

// RealPath implements [FS].
func (OS) RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }
