package peer

import (
	"bytes"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Of returns who connected to a unix socket, or who listens on it.
func Of(conn net.Conn) (Credentials, error) {
	var c Credentials
	err := control(conn, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			c = Credentials{PID: int(cred.Pid), UID: int(cred.Uid)}
		}
		return err
	})
	return c, err
}

// startField is where /proc/PID/stat has the start time, counted from behind the
// name of the program, which may hold blanks.
const startField = 19

// Started returns when a process started, in a form that only comparing makes sense of: a process number that the
// system gave out again has another one. It is empty if there is no such process.
func Started(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startField || fields[0][0] == 'Z' {
		return ""
	}
	return string(fields[startField])
}
