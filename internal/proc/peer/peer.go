// Package peer says which user and which process is at the other end of a unix
// socket, as the system noted it (peer credentials), and when a process started.
//
// The user is what holds. The process is the one that connected, or that listened:
// it may have passed the socket on, or have ended and left its number to another.
//
// Stability: internal.
package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// Credentials are who is at the other end of a unix socket.
type Credentials struct {
	PID int // 0 where the system does not say
	UID int
}

// ErrUnsupported is the answer of systems without peer credentials.
var ErrUnsupported = errors.New("this system has no peer credentials")

// Trusted reports whether a user may do what this process may: it is this process's own user, or root.
func Trusted(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// Check refuses a unix socket whose other end belongs to a user who is not [Trusted]. Where the system has no peer
// credentials it refuses nothing: the modes of the socket and its directory are all that there is.
func Check(conn net.Conn) error {
	c, err := Of(conn)
	switch {
	case errors.Is(err, ErrUnsupported):
		return nil
	case err != nil:
		return fmt.Errorf("the user at the other end of the socket is not known: %w", err)
	case !Trusted(c.UID):
		return fmt.Errorf("user %d is at the other end of the socket, and only user %d or root is trusted", c.UID, os.Geteuid())
	}
	return nil
}

// control calls do with the descriptor of a unix socket.
func control(conn net.Conn, do func(fd int) error) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("%T is not a unix socket", conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}
