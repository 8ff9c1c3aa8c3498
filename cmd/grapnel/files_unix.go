//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/peer"
)

const holdsLock = true // a locked file can be replaced

// tryLock locks a file while it is open, unless another process has it. The system frees the lock of a killed process.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// checkDir refuses a directory in which another user could replace our files: it and its parents must belong to this
// user or root and be writable by nobody else, or be sticky.
func checkDir(dir string) error {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return unwrapPath(err)
	}
	for _, path := range []string{dir, resolved} {
		for {
			info, err := os.Stat(path)
			if err != nil {
				return unwrapPath(err)
			}
			if err := checkOwner(path, info); err != nil {
				return err
			}
			parent := filepath.Dir(path)
			if parent == path {
				break
			}
			path = parent
		}
	}
	return nil
}

func checkOwner(dir string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	me, mode := os.Geteuid(), info.Mode()
	ownGroup := int(owner.Gid) == os.Getegid() && int(owner.Gid) == me
	switch {
	case !peer.Trusted(int(owner.Uid)):
		return fmt.Errorf("the directory %s belongs to another user (%d), who could replace what is in it; choose a directory of your own", dir, owner.Uid)
	case mode&fs.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && !ownGroup:
		return fmt.Errorf("others may write to the directory %s (mode %04o) and could replace what is in it; choose a directory of your own", dir, mode.Perm())
	}
	return nil
}

func checkFile(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && (!peer.Trusted(int(owner.Uid)) || info.Mode().Perm()&0o002 != 0) {
		return fmt.Errorf("%s belongs to another user (%d), or others may write to it (mode %04o); remove it, or choose another",
			path, owner.Uid, info.Mode().Perm())
	}
	return nil
}

// ownFile reports whether a file belongs to this user.
func ownFile(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(owner.Uid) == os.Geteuid()
}

// openOwn opens a file that belongs to this user alone. It follows no link, and does not wait for a pipe's writer.
func openOwn(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, unwrapPath(err))
	}
	info, err := f.Stat()
	if err == nil {
		owner, ok := info.Sys().(*syscall.Stat_t)
		if ok && info.Mode().IsRegular() && int(owner.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0 {
			return f, nil
		}
		err = fmt.Errorf("%s is not a file that this user alone may open; remove it", path)
	}
	return nil, errors.Join(err, f.Close())
}

// listenPrivately sets the process's umask: nothing else of it creates files yet.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	defer unix.Umask(unix.Umask(0o177))
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if ul, ok := l.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false) // by then it may be another's; see ownSocket
	}
	return l, err
}
