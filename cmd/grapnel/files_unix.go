//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock locks a file while it is open, unless another process has it. The system frees the lock of a killed process.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// ownFile reports whether a file belongs to this user.
func ownFile(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(owner.Uid) == os.Geteuid()
}

// syncDir makes sure that a file which was renamed in a directory keeps its new content if the machine stops.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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

// ownGroup has a program start in a process group of its own: what a terminal sends to this one is not for it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// lowerGroup lowers the priority of a group that was started, where the system lets it.
func lowerGroup(cmd *exec.Cmd) { _ = unix.Setpriority(unix.PRIO_PGRP, cmd.Process.Pid, 10) }

// killGroup ends what is left of a group.
func killGroup(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
