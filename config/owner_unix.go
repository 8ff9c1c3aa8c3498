//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// otherOwner reports whether a file belongs to neither this process's user nor root.
func otherOwner(info fs.FileInfo) (uid int, other bool) {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	uid = int(owner.Uid)
	return uid, uid != 0 && uid != os.Geteuid()
}
