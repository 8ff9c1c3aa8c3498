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

// ordinaryUser runs the server if this process is root; else it is zero.
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

func giveToServer(dir string) error {
	uid, gid, err := ordinaryUser()
	if err != nil || uid == 0 {
		return err
	}
	return os.Chown(dir, uid, gid)
}

func asOrdinaryUser(cmd *exec.Cmd) error {
	uid, gid, err := ordinaryUser()
	if err != nil || uid == 0 {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // ids of the system
	return nil
}
