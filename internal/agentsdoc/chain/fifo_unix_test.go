//go:build unix

package chain

import "syscall"

// mkfifo makes a fifo.
func mkfifo(path string) error { return syscall.Mkfifo(path, 0o644) }
