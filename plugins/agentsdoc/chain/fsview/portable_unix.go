//go:build unix

package fsview

import (
	"os"
	"syscall"
)

// nonBlocking keeps an open from waiting for the other end of a fifo.
const nonBlocking = syscall.O_NONBLOCK

// stdID reads the number of a file out of what the standard library got.
func stdID(fi os.FileInfo) FileID {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return FileID{Dev: uint64(st.Dev), Ino: uint64(st.Ino)} //nolint:unconvert // the types differ by system
}
