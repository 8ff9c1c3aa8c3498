// Package fsview is the view of a file system that package chain works on, and
// the machine's own.
//
// It grants the least that is needed to find and read a few files: a folder is
// opened from its parent's handle, nothing is listed, nothing is written, no
// link is followed that was not resolved first, and nothing blocks. Tests and
// sandboxing hosts put another implementation in its place.
//
// Where to start: [FS] and [Dir]. [OS] is the machine by the fastest way its
// system has, [Portable] the same by the standard library alone.
//
// Stability: experimental.
package fsview

import (
	"errors"
	"io"
	"io/fs"
)

// FS is the view of a file system that package chain works on. It grants the least
// that is needed: folders are opened one below the other from their parent's
// handle, nothing is listed, and nothing is written.
//
// Errors are told apart by fs.ErrNotExist, fs.ErrPermission and [ErrLink]; all
// others count as failures to read.
type FS interface {
	// OpenDir opens the folder at an absolute path, links followed.
	OpenDir(path string) (Dir, error)
	// RealPath resolves all links of an absolute path. It opens nothing.
	RealPath(path string) (string, error)
}

// Dir is an open folder. A name is always one element of a path, and a link of
// that name is never followed.
type Dir interface {
	// OpenDir opens a folder in this one; [ErrLink] if the name is a link's.
	OpenDir(name string) (Dir, error)
	// Lstat describes what has the name.
	Lstat(name string) (Info, error)
	// Open opens a file for reading. It must not block, whatever has the name.
	Open(name string) (File, error)
	// Info describes the folder itself.
	Info() (Info, error)
	// Close releases the folder. Called once.
	Close() error
}

// File is an open file.
type File interface {
	io.Reader
	// Info describes the file that is open, whatever has its name by now.
	Info() (Info, error)
	// Close releases the file. Called once.
	Close() error
}

// ErrLink is the error for a symbolic link where a folder was expected.
var ErrLink = errors.New("is a symbolic link")

// Info is what a view tells of a file.
type Info struct {
	// Mode is read for its type only.
	Mode fs.FileMode
	Size int64
	// MTimeMs is the time of the last change in milliseconds since 1970.
	MTimeMs int64
	// ID tells files apart; the zero value where a system has none.
	ID FileID

	// std stands in for ID where the standard library knows and does not tell.
	std fs.FileInfo
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
	return i.std != nil && other.std != nil && sameStd(i.std, other.std)
}

// IsLink reports whether the file is a symbolic link.
func (i Info) IsLink() bool { return i.Mode.Type() == fs.ModeSymlink }
