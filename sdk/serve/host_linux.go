package serve

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// newHostCheck returns a check that lets in only the host. The system noted who
// connected. A host that has said who it is, in this namespace, is that very
// process; of another the user is known.
func newHostCheck(getenv func(string) string) func(net.Conn) error {
	host, namespace, known := hostOf(getenv(markKey))
	if own, err := os.Readlink("/proc/self/ns/pid"); err != nil || own != "pid:["+namespace+"]" {
		known = false
	}
	return func(conn net.Conn) error {
		c, ok := conn.(*net.UnixConn)
		if !ok {
			return nil // a loopback address: the system does not say who it is
		}
		cred, err := peerOf(c)
		switch {
		case err != nil:
			return err
		case known && int(cred.Pid) != host:
			return fmt.Errorf("process %d connects, which is not the host", cred.Pid)
		case int(cred.Uid) != os.Geteuid() && cred.Uid != 0:
			return fmt.Errorf("user %d connects", cred.Uid)
		}
		return nil
	}
}

// peerOf returns who connected.
func peerOf(c *net.UnixConn) (*syscall.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *syscall.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, credErr
}
