//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"context"
	"io/fs"
	"net"
	"os"
)

// checkDir looks at nothing: this system has no modes to look at.
func checkDir(string) error { return nil }

// checkFile looks at nothing, as checkDir.
func checkFile(string, fs.FileInfo) error { return nil }

// openOwn opens a file. Who else may is what its directory says.
func openOwn(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }

// listenPrivately opens the socket. Who may connect is what its folder says.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if ul, ok := l.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false)
	}
	return l, err
}
