//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"context"
	"net"
)

// checkFolder looks at nothing: this system has no modes to look at.
func checkFolder(string) error { return nil }

// lockFolder locks nothing: this system has no such locks.
func lockFolder(string) (unlock func(), err error) { return func() {}, nil }

// listenPrivately opens the socket. Who may connect is what its folder says.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if ul, ok := l.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false)
	}
	return l, err
}
