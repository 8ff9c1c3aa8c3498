//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkFolder refuses a folder in which others could put a socket of theirs in
// place of ours. In a sticky one they cannot.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return unwrapPath(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	me, mode := os.Geteuid(), info.Mode()
	ownGroup := int(owner.Gid) == os.Getegid() && int(owner.Gid) == me
	switch {
	case int(owner.Uid) != me && owner.Uid != 0:
		return fmt.Errorf("the folder %s belongs to another user (%d), who could replace the socket", dir, owner.Uid)
	case mode&fs.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && !ownGroup:
		return fmt.Errorf("others may write to the folder %s (mode %04o) and could replace the socket; choose a folder of your own", dir, mode.Perm())
	}
	return nil
}

// lockFolder keeps other gateways from opening sockets in a folder meanwhile.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, unwrapPath(err)
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the folder cannot be locked: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil // which frees the lock
}

// listenPrivately opens the socket without a moment in which others may connect.
// The mask is the process's: nothing else of it creates files yet.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	defer unix.Umask(unix.Umask(0o177))
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if ul, ok := l.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false) // by then it may be another's; see ownSocket
	}
	return l, err
}
