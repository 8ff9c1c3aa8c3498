//go:build !unix

// Package procgroup ends programs.
package procgroup

import "os/exec"

// Supported says that there are no process groups.
const Supported = false

// Own does nothing.
func Own(*exec.Cmd) {}

// End ends the program.
func End(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// Kill ends the program.
func Kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }
