package autostart

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// checkPeer refuses a socket at which another user than this one or root listens.
func checkPeer(fd int) error {
	who, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	switch {
	case err != nil:
		return err
	case who.Uid != 0 && int(who.Uid) != os.Geteuid():
		return errors.New("user " + strconv.Itoa(int(who.Uid)) + " listens there, and would decide; nothing was sent")
	}
	return nil
}
