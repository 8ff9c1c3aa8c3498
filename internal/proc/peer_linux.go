package proc

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// checkListener checks, before anything is dialled, that every socket that
// listens on a TCP address is the plugin's or a descendant's. Of a unix socket
// the system says it on the connection.
func (p *Process) checkListener(h handshake) error {
	if h.network != "tcp" {
		return nil
	}
	addr, err := netip.ParseAddrPort(h.address)
	if err != nil {
		return err
	}
	sockets, err := tcpListeners(addr)
	if err != nil {
		return err
	}
	if len(sockets) == 0 {
		return unix.ECONNREFUSED
	}
	for _, inode := range sockets {
		if !p.child.descendants().holds(inode) {
			return p.foreign(h, "a TCP address on which another process listens")
		}
	}
	return nil
}

// checkPeer checks that the other end of a connection belongs to the plugin or
// one of its descendants: to who listened, of a unix socket, and to who has
// accepted it, of a TCP connection.
func (p *Process) checkPeer(ctx context.Context, conn net.Conn, h handshake) error {
	if socket, ok := conn.(*net.UnixConn); ok {
		pid, err := peerOf(socket)
		if err == nil && !p.child.descendants().has(pid) {
			err = p.foreign(h, fmt.Sprintf("a socket on which process %d listens, and that is none of its own", pid))
		}
		return err
	}
	local, errLocal := netip.ParseAddrPort(conn.LocalAddr().String())
	remote, errRemote := netip.ParseAddrPort(conn.RemoteAddr().String())
	if errLocal != nil || errRemote != nil {
		return net.UnknownNetworkError(conn.LocalAddr().Network())
	}
	for {
		inode, found, err := tcpConnection(remote, local)
		switch {
		case err != nil:
			return err
		case !found:
			return unix.ECONNRESET
		case inode == 0: // not accepted yet
		case p.child.descendants().holds(inode):
			return nil
		default:
			return p.foreign(h, "a TCP address at which another process takes its connections")
		}
		if !pause(ctx, socketPoll) {
			return errGaveUp
		}
	}
}

// peerOf returns the process that listened on a unix socket when it began to.
func peerOf(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Pid), nil
}

// has reports whether a process is the root, a descendant of it, or bears its
// mark.
func (f *family) has(pid int) bool {
	if pid == f.root.pid {
		return true
	}
	f.note()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.known {
		if id.pid == pid {
			return true
		}
	}
	return pid > 0 && readMark(pid) == f.mark
}

// holds reports whether the root, a descendant of it, or a process that bears
// its mark has a socket open.
func (f *family) holds(inode uint64) bool {
	if hasSocket(f.root.pid, inode) {
		return true
	}
	for _, p := range readProcesses(f.root.start) {
		if hasSocket(p.id.pid, inode) && f.has(p.id.pid) {
			return true
		}
	}
	return false
}
