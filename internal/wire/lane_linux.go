package wire

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls that never block need not be announced to the scheduler, which would give the processor away and
// wake its monitor: that costs more than the calls themselves.

func transmit(fd uintptr, p []byte) (int, error) {
	return rawCall(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func receive(fd uintptr, p []byte) (int, error) {
	return rawCall(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

func rawCall(trap, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0) //nolint:gosec // as in package unix
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
