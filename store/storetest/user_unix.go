//go:build unix

package storetest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// ordinaryUser is who runs the server where root may not: zeros where this
// process is not root.
func ordinaryUser() (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return 0, 0, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, lookup := user.Lookup(name)
		if lookup != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		return uid, gid, errors.Join(uidErr, gidErr)
	}
	return 0, 0, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// giveAway makes a folder the server's.
func giveAway(dir string) error {
	uid, gid, err := ordinaryUser()
	if err != nil || uid == 0 {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// asOrdinaryUser makes a command run as the server's user.
func asOrdinaryUser(cmd *exec.Cmd) error {
	uid, gid, err := ordinaryUser()
	if err != nil || uid == 0 {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // ids of the system
	return nil
}
