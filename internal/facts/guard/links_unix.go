//go:build unix

package guard

import (
	"io/fs"
	"syscall"
)

// shared reports whether a file has more names than one.
func shared(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 1
}
