//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// maxSocketPath is the size of sun_path less its final zero.
const maxSocketPath = 103

// shortTemp is where sockets go when the temporary directory has too long a path.
const shortTemp = "/tmp"

// identify recognizes no file: each start reads the program.
func identify(os.FileInfo) (fileID, bool) { return fileID{}, false }

func requiredEnv() []string                   { return nil }
func sysProcAttr(*cage) *syscall.SysProcAttr  { return &syscall.SysProcAttr{Setpgid: true} }
func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }
