//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
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

// There are no process groups.
func ownGroup(*exec.Cmd)   {}
func lowerGroup(*exec.Cmd) {}
func killGroup(*exec.Cmd)  {}
