//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"context"
	"io/fs"
	"net"
	"os"
)

// tryLock locks nothing: this system has no such locks, and the later of two commands wins.
func tryLock(*os.File) (bool, error) { return true, nil }

// syncDir leaves it to the system.
func syncDir(string) error { return nil }

func ownFile(fs.FileInfo) bool { return true }

// listenPrivately relies on the access rights of the directory.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if ul, ok := l.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false)
	}
	return l, err
}
