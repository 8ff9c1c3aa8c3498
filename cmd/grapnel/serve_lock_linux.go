package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockHolder says which process holds the lock of a file, for a message: " (process 4711)", or nothing.
func lockHolder(f *os.File) string {
	var st syscall.Stat_t
	table, err := os.ReadFile("/proc/locks")
	if err != nil || syscall.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	inode := fmt.Appendf(nil, "%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range bytes.Lines(table) { // 1: FLOCK ADVISORY WRITE 4711 fe:00:123 0 EOF
		if field := bytes.Fields(line); len(field) > 5 && string(field[1]) == "FLOCK" && bytes.Equal(field[5], inode) {
			return fmt.Sprintf(" (process %s)", field[4])
		}
	}
	return ""
}
