package peer

import (
	"net"

	"golang.org/x/sys/unix"
)

// Of returns who connected to a unix socket, or who listens on it.
func Of(conn net.Conn) (Credentials, error) {
	var c Credentials
	err := control(conn, func(fd int) error {
		cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err != nil {
			return err
		}
		c.UID = int(cred.Uid)
		c.PID, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		return err
	})
	return c, err
}
