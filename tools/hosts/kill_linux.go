package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// endGateway sends a signal to the gateway that listens at a socket, and waits until it has ended. It does nothing if
// nobody listens.
func endGateway(ctx context.Context, socket string, signal syscall.Signal) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil //nolint:nilerr // nobody listens
	}
	defer conn.Close() // it may be closed already
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *syscall.Ucred
	var peerErr error
	err = raw.Control(func(fd uintptr) {
		peer, peerErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, peerErr, conn.Close()); err != nil {
		return err
	}
	if err := syscall.Kill(int(peer.Pid), signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for !ended(int(peer.Pid)) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway does not end: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}

// ended reports whether a process has ended, be it that nobody has waited for it yet.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}
