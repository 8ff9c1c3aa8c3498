//go:build unix

// Package procgroup ends programs together with what they have started: each runs in a process group of its own.
//
// Stability: internal.
package procgroup

import (
	"os/exec"
	"syscall"
)

// Supported says that the system has process groups. Where it has none, only the program itself is ended.
const Supported = true

// Own starts a program in a group of its own.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// End asks the group of a program that was started to end.
func End(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// Kill ends what is left of the group of a program that was started; an error may mean that nothing is.
func Kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
