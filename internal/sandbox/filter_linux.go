package sandbox

import (
	"math"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter of system calls closes what Landlock does not know: sockets that
// are neither TCP nor unix, the keys of the user, and io_uring, which makes
// sockets without a system call of that name. It judges by numbers and never
// by what pointers lead to, which could change under it.

// Offsets in the kernel's struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16 // the lower half, on the little-endian machines of filterArch
	offArg1   = 24
	offArg2   = 32
)

// socketType is the part of socket's second argument that is no flag.
const socketType = 0xf

// x32Bit marks system calls of a second interface of amd64, with numbers of
// its own.
const x32Bit = 0x40000000

// filterArch returns the kernel's name of this machine, or 0 if there is no
// filter for it.
func filterArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// canFilter reports whether system calls can be filtered here.
func canFilter() bool {
	if filterArch() == 0 {
		return false
	}
	// Zero when the thread has no filter, or the number of the mode.
	_, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil
}

// allow and refuse are what a filter may answer.
const allow = unix.SECCOMP_RET_ALLOW

func refuse(errno unix.Errno) uint32 {
	return unix.SECCOMP_RET_ERRNO | uint32(errno) //nolint:gosec // numbers of errors are small
}

// filterFor makes the filter for a network grant.
func filterFor(n Net) []unix.SockFilter {
	code := []unix.SockFilter{load(offArch)}
	// Numbers of another interface mean other calls.
	code = append(code, unless(filterArch(), refuse(unix.ENOSYS))...)
	code = append(code, load(offNumber))
	if runtime.GOARCH == "amd64" {
		code = append(code,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: x32Bit},
			answer(refuse(unix.ENOSYS)))
	}
	for _, number := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY} {
		code = append(code, when(number, refuse(unix.EPERM))...)
	}
	if !n.All {
		code = append(code, unless(unix.SYS_SOCKET, allow)...)
		code = append(code, sockets(!n.none())...)
	}
	return append(code, answer(allow))
}

// sockets judges the call socket. Landlock knows TCP alone: what else connects
// to a port, such as MPTCP and SCTP, may not be had, neither by its number nor
// by a type that stands for it.
func sockets(internet bool) []unix.SockFilter {
	code := append([]unix.SockFilter{load(offArg0)}, when(unix.AF_UNIX, allow)...)
	if !internet {
		return append(code, answer(refuse(unix.EACCES)))
	}
	code = append(code, when(unix.AF_NETLINK, allow)...)
	// Over the refusal, if it is one of these families.
	code = append(code,
		jumpIf(unix.AF_INET, 2),
		jumpIf(unix.AF_INET6, 1),
		answer(refuse(unix.EACCES)),
		load(offArg1),
		unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketType},
		jumpIf(unix.SOCK_STREAM, 2),
		jumpIf(unix.SOCK_DGRAM, 1),
		answer(refuse(unix.EPROTONOSUPPORT)),
		load(offArg2),
	)
	for _, protocol := range []uint32{unix.IPPROTO_IP, unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		code = append(code, when(protocol, allow)...)
	}
	return append(code, answer(refuse(unix.EPROTONOSUPPORT)))
}

// jumpIf goes over some instructions if the loaded word is value.
func jumpIf(value uint32, over uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: over, K: value}
}

// load loads a word of the call's description.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// answer ends the filter.
func answer(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// when answers if the loaded word is value; unless, if it is not.
func when(value, verdict uint32) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: value}, answer(verdict)}
}

func unless(value, verdict uint32) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: value}, answer(verdict)}
}

// installFilter puts the calling thread under a filter.
func installFilter(code []unix.SockFilter) error {
	if len(code) > math.MaxUint16 {
		return os.NewSyscallError("seccomp", unix.E2BIG)
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}                                               //nolint:gosec // checked above
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // how the kernel takes it
	runtime.KeepAlive(code)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
