//go:build unix && !linux

package wire

import (
	"errors"

	"golang.org/x/sys/unix"
)

func transmit(fd uintptr, p []byte) (int, error) { return again(unix.Write, fd, p) }
func receive(fd uintptr, p []byte) (int, error)  { return again(unix.Read, fd, p) }

func again(call func(fd int, p []byte) (int, error), fd uintptr, p []byte) (int, error) {
	for {
		n, err := call(int(fd), p) //nolint:gosec // a descriptor
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
