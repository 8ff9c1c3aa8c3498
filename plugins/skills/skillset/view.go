package skillset

import (
	"errors"
	"io/fs"
)

// FS is the view of a file system that [Resolve] works on. Nothing is written.
//
// Errors are told apart by fs.ErrNotExist, fs.ErrPermission and
// [ErrNotRegular]; all others count as failures to read.
type FS interface {
	// RealPath resolves all links of an absolute path. It opens nothing.
	RealPath(path string) (string, error)
	// Stat describes what an absolute path leads to, links followed. It opens
	// nothing.
	Stat(path string) (fs.FileInfo, error)
	// OpenRoot opens the folder at an absolute path, links followed.
	OpenRoot(path string) (Root, error)
}

// Root is an open folder out of which no name and no link leads: an attempt is
// an error. Names are relative paths of the system.
type Root interface {
	// OpenRoot opens a folder below this one, which then bounds in its turn.
	OpenRoot(name string) (Root, error)
	// Stat describes what a name leads to, links followed. It opens nothing.
	Stat(name string) (fs.FileInfo, error)
	// Open opens a regular file, or a folder for listing; [ErrNotRegular] for
	// anything else. It does not block, whatever has the name.
	Open(name string) (fs.File, error)
	// Close releases the folder. Called once.
	Close() error
}

// ErrNotRegular is the error for a fifo, socket or device, and for anything but a
// folder where one is wanted.
var ErrNotRegular = errors.New("is not a file or folder of the kind that is wanted here")

// errChanged is the error for a name that led to another file a moment ago.
var errChanged = errors.New("changed while it was opened")
