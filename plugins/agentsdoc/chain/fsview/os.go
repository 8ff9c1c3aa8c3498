package fsview

import (
	"os"
	"path/filepath"
)

// OS is the file system of the machine. On Linux it works by bare system calls
// relative to a folder's descriptor; elsewhere it is os.Root.
type OS struct{}

var _ FS = OS{}

// RealPath implements [FS].
func (OS) RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// sameStd compares two descriptions that carry no number.
func sameStd(a, b os.FileInfo) bool { return os.SameFile(a, b) }
