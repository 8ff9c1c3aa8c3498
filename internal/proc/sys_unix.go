//go:build unix && !linux

package proc

import (
	"syscall"
)

// maxSocketPath is the size of sun_path less its final zero.
const maxSocketPath = 103

// shortTemp is where sockets go when the temporary directory has too long a path.
const shortTemp = "/tmp"

func requiredEnv() []string                   { return nil }
func sysProcAttr(*cage) *syscall.SysProcAttr  { return &syscall.SysProcAttr{Setpgid: true} }
func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }
