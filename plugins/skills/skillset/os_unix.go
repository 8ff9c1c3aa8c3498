//go:build unix

package skillset

import "syscall"

// nonBlocking keeps an open from waiting for the other end of a fifo that took a
// file's place.
const nonBlocking = syscall.O_NONBLOCK
