//go:build unix

package fsview

import (
	"os"
	"syscall"
)

func stdID(fi os.FileInfo) FileID {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return FileID{Dev: uint64(st.Dev), Ino: uint64(st.Ino)} //nolint:unconvert // the types differ by system
}
