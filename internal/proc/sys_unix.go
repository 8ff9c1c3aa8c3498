//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// maxSocketPath is the size of sun_path less its final zero.
const maxSocketPath = 103

// shortTemp is where sockets go when the temporary folder has too long a path.
const shortTemp = "/tmp"

// Missing lists the protections that this system does not give, in words for
// people.
func Missing() []string {
	return []string{
		"a plugin outlives a host that is killed (no death signal)",
		"descendants outside the process group are not found",
		"programs are executed by path, not by the handle that was checked",
		"core dumps of plugins are not turned off",
		"nobody asks whose the socket is that a plugin names",
		"no sandbox tier above T0 is reached",
		"a plugin killed for memory counts as a crash",
	}
}

func canExecHandle() bool { return false }

func requiredEnv() []string { return nil }

func sysProcAttr(*cage) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }

// withoutStrays adds nothing: this system does not tell which descriptors
// there are.
func withoutStrays(files []*os.File) []*os.File { return files }

func onMainThread() bool { return false }

func threadID() int { return 0 }

func limitCore(int) {}

func oomKills() int { return 0 }

func ownPeak() int64 { return 0 }

func peakOf(*os.ProcessState) int64 { return 0 }
