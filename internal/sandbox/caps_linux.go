package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// keptCapabilities are those that a program of root keeps: with them it reads
// and writes files of all users, within what Landlock grants. A host that runs
// as root grants folders of others, and could not otherwise.
const keptCapabilities = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH

// dropCapabilities takes all others from the calling thread. With
// no_new_privs, what it starts has no more, even as root: no loading of
// modules, no raising of limits, no mounts, no other users, no clock.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for i, kept := range [2]uint32{keptCapabilities, 0} {
		sets[i].Permitted &= kept
		sets[i].Effective &= kept
		sets[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	return nil
}
