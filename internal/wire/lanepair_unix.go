//go:build unix

package wire

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// LanePair makes a lane: the host's end, and the plugin's for the process to inherit. Both are nil where the system
// has no such pairs.
func LanePair() (host net.Conn, plugin *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	plugin = os.NewFile(uintptr(fds[1]), "lane")
	if host, err = connOf(fds[0]); err != nil {
		_ = plugin.Close()
		return nil, nil, err
	}
	return host, plugin, nil
}

// LaneOf returns the plugin's end, which no process that it starts inherits. A descriptor of something else is left
// alone.
func LaneOf(fd int) (net.Conn, error) {
	address, err := unix.Getsockname(fd)
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	if _, ok := address.(*unix.SockaddrUnix); !ok {
		return nil, os.ErrInvalid
	}
	unix.CloseOnExec(fd)
	return connOf(fd)
}

// connOf takes over a descriptor.
func connOf(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "lane")
	if f == nil {
		return nil, os.ErrInvalid
	}
	defer f.Close() //nolint:errcheck // the connection has its own
	return net.FileConn(f)
}
