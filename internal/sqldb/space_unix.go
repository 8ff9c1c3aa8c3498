//go:build darwin || linux

package sqldb

import (
	"os"
	"syscall"
)

func freeSpace(dir string) (free uint64, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	blocks := st.Bavail
	if os.Geteuid() == 0 {
		blocks = st.Bfree // includes what is reserved for root
	}
	return blocks * uint64(st.Bsize), true //nolint:gosec // a size is not negative
}
