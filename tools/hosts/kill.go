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
	pid, err := signalGateway(socket, signal)
	if err != nil || pid == 0 {
		return err
	}
	for !ended(pid) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway does not end: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}

// signalGateway sends a signal to the gateway that listens at a socket, and returns its id; 0 if nobody listens.
func signalGateway(socket string, signal syscall.Signal) (pid int, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return 0, nil // nobody listens
	}
	defer conn.Close() // it may be closed already
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *syscall.Ucred
	var peerErr error
	err = raw.Control(func(fd uintptr) {
		peer, peerErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, peerErr, conn.Close()); err != nil { // a gateway that ends waits for its clients
		return 0, err
	}
	if err := syscall.Kill(int(peer.Pid), signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, err
	}
	return int(peer.Pid), nil
}

// ended reports whether a process has ended with all its threads, be it that nobody has waited for it yet.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none if it is gone
	return err != nil || bytes.Contains(stat, []byte(") Z ")) && len(threads) <= 1
}
