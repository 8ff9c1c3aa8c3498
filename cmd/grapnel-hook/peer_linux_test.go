package main

import (
	"errors"
	"net"
	"syscall"
)

// peer is the process that listens at a socket.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	if controlled := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); controlled != nil || err != nil {
		return 0, errors.Join(controlled, err)
	}
	return int(cred.Pid), nil
}
