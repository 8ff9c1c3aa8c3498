//go:build unix

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/phases"
)

// checkPath refuses a program that somebody else could replace: the opened file and each directory above it, both as
// written and with links resolved, must be writable by this user or root only. Sticky directories are fine.
func checkPath(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return resourceOr(phases.CauseUnsafePath, err, "%s cannot be examined: %w", path)
	}
	if problem := writableByOthers(info); problem != "" {
		return unsafePath(path, path, problem)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return resourceOr(phases.CauseUnsafePath, err, "%s cannot be resolved: %w", path)
	}
	for _, dir := range []string{path, resolved} {
		for dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			info, err := os.Stat(dir)
			if err != nil {
				return resourceOr(phases.CauseUnsafePath, err, "%s cannot be examined: %w", dir)
			}
			if problem := writableByOthers(info); problem != "" {
				return unsafePath(path, dir, problem)
			}
		}
	}
	return nil
}

func unsafePath(program, where, problem string) error {
	return phases.Errorf(phases.CauseUnsafePath, "%s could be replaced by somebody else: %s %s", program, where, problem)
}

// writableByOthers says how somebody else could change a file or a directory's entries, or "". A user's private
// group (same number as the user) is not somebody else.
func writableByOthers(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	mode, me := info.Mode(), os.Geteuid()
	if owner := int(st.Uid); owner != 0 && owner != me {
		return fmt.Sprintf("belongs to user %d", owner)
	}
	if info.IsDir() && mode&fs.ModeSticky != 0 {
		return ""
	}
	if mode.Perm()&0o002 != 0 {
		return fmt.Sprintf("may be written by everybody (mode %04o)", mode.Perm())
	}
	private := int(st.Gid) == os.Getegid() && int(st.Gid) == me
	if mode.Perm()&0o020 != 0 && !private {
		return fmt.Sprintf("may be written by group %d (mode %04o)", st.Gid, mode.Perm())
	}
	return ""
}

// lockDir locks a directory while the file is open, even if the host is killed. It does not follow links.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	mine, errMine := f.Stat()
	there, errThere := os.Lstat(path) // a sweep may have removed it before it was locked
	removed := errMine != nil || errThere != nil || !os.SameFile(mine, there)
	if err == nil && removed || errors.Is(err, unix.EWOULDBLOCK) {
		err = errTaken
	}
	if err != nil {
		closeQuietly(f)
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

func ownedByUser(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// readNow reads what a pipe holds; 0 if it is empty or at its end.
func readNow(fd uintptr, p []byte) int {
	n, _ := syscall.Read(int(fd), p)
	return max(n, 0)
}
