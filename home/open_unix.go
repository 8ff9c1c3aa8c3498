//go:build unix

package home

import (
	"os"
	"syscall"
)

// openFlags open a pipe without waiting for its writer, and never take a
// terminal over.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
