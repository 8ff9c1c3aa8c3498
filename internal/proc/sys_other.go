//go:build !unix

package proc

import (
	"io/fs"
	"os"
	"syscall"
)

// maxSocketPath is 0: plugins listen on loopback addresses here.
const maxSocketPath = 0

// shortTemp is empty: the length of a path does not matter.
const shortTemp = ""

// identify recognizes no file: each start reads the program.
func identify(os.FileInfo) (fileID, bool) { return fileID{}, false }

// requiredEnv lists variables without which no program can open a socket.
func requiredEnv() []string                  { return []string{"SYSTEMROOT"} }
func sysProcAttr(*cage) *syscall.SysProcAttr { return nil }

// signalGroup does nothing: there are no process groups.
func signalGroup(int, syscall.Signal) {}

// checkPath accepts every path: this system has no permission bits.
func checkPath(string, *os.File) error { return nil }

// writableByOthers finds nothing, for the same reason.
func writableByOthers(fs.FileInfo) string { return "" }

// lockDir locks nothing: this system has no locks on directories. Leftover directories are then never removed.
func lockDir(string) (*os.File, error) { return nil, nil }

// ownedByUser is for the sweep, which locks first.
func ownedByUser(fs.FileInfo) bool { return true }

// readNow reads nothing: pipes have no deadlines here, and are closed instead.
func readNow(uintptr, []byte) int { return 0 }
