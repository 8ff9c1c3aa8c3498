//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package proc

import (
	"io/fs"
	"os"
)

// lockFolder locks nothing: this system has no locks on folders. Leftover
// folders are then never removed, which [Missing] says.
func lockFolder(string) (*os.File, error) { return nil, nil }

// ownedByUser is for the sweep, which locks first.
func ownedByUser(fs.FileInfo) bool { return true }
