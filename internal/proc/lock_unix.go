//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFolder locks a folder for as long as the file is open, and fails with
// errTaken if somebody else has locked or removed it. The system frees the lock
// of a killed host. A link is not followed.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && !isAt(f, path) || errors.Is(err, unix.EWOULDBLOCK) {
		err = errTaken
	}
	if err != nil {
		closeQuietly(f)
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// isAt reports whether an open folder is that at path: a sweep may have removed
// it between its opening and its locking.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	there, errThere := os.Lstat(path)
	return err == nil && errThere == nil && os.SameFile(mine, there)
}

// ownedByUser reports whether a file belongs to the user of this process.
func ownedByUser(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
