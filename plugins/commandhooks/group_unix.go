//go:build unix

package commandhooks

import (
	"os/exec"
	"syscall"
)

const supported = true

// group is the process group of a script.
type group struct{ cmd *exec.Cmd }

// ownGroup gives a script a process group, which is asked to end when its context does.
func ownGroup(cmd *exec.Cmd) group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return group{cmd}
}

// kill ends what is left of the group.
func (g group) kill() {
	if g.cmd.Process != nil {
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // it may be empty
	}
}
