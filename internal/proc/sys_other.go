//go:build !unix

package proc

import (
	"os"
	"syscall"
)

// maxSocketPath is 0: plugins listen on loopback addresses here.
const maxSocketPath = 0

// shortTemp is no folder: the length of a path does not matter.
const shortTemp = ""

// Missing lists the protections that this system does not give, in words for
// people.
func Missing() []string {
	return []string{
		"a plugin outlives a host that is killed (no death signal)",
		"a plugin is killed alone, not with its descendants",
		"a plugin is not asked to end before it is killed, except over its connection",
		"programs are executed by path, not by the handle that was checked",
		"nobody checks who may write a plugin's program",
		"core dumps of plugins are not turned off",
		"nobody asks whose the socket is that a plugin names",
		"no sandbox tier above T0 is reached",
		"a plugin killed for memory counts as a crash",
		"folders of killed hosts are not removed",
	}
}

func canExecHandle() bool { return false }

// requiredEnv lists variables without which no program can open a socket.
func requiredEnv() []string { return []string{"SYSTEMROOT"} }

func sysProcAttr(*cage) *syscall.SysProcAttr { return nil }

// signalGroup does nothing: there are no process groups.
func signalGroup(int, syscall.Signal) {}

// withoutStrays adds nothing: this system does not tell which descriptors
// there are.
func withoutStrays(files []*os.File) []*os.File { return files }

func onMainThread() bool { return false }

func threadID() int { return 0 }

func limitCore(int) {}

func oomKills() int { return 0 }

func ownPeak() int64 { return 0 }

func peakOf(*os.ProcessState) int64 { return 0 }
