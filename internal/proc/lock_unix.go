//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder locks a folder for as long as the file is open, and fails if
// somebody else has locked it. The system frees the lock of a killed host.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		closeQuietly(f)
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}
