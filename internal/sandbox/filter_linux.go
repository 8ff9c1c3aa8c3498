package sandbox

import (
	"math"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter of system calls judges by numbers and never by what pointers lead
// to, which could change under it. What it refuses is in calls.

// Offsets in the kernel's struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// offArg is the offset of the lower half of an argument, on the little-endian
// machines of filterArch. The upper half follows.
func offArg(arg uint32) uint32 { return offArgs + 8*arg }

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

// filterFor makes the filter of a policy.
func filterFor(s Support, p Policy) []unix.SockFilter {
	code := []unix.SockFilter{load(offArch)}
	// Numbers of another interface mean other calls.
	code = append(code, unless(filterArch(), refuse(unix.ENOSYS))...)
	code = append(code, load(offNumber))
	if runtime.GOARCH == "amd64" {
		code = append(code,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: x32Bit},
			answer(refuse(unix.ENOSYS)))
	}
	for _, c := range callsFor(s, p) {
		block := both(c.check, pass())
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(len(block)), K: c.number}) //nolint:gosec // a dozen
		code = append(code, block...)
	}
	return append(code, pass()...)
}

// callsFor chooses the tables of a policy.
func callsFor(s Support, p Policy) []call {
	var list []call
	switch {
	case p.Net.All:
	case !p.Net.none():
		list = portCalls()
	case s.Landlock >= abiUnix || p.writesAll():
		list = localCalls()
	default:
		list = listenerCalls()
	}
	return append(list, calls()...)
}

// What follows makes checks. A check answers, or comes to its end.

// oneOf refuses an argument that is none of the values.
func oneOf(arg uint32, errno unix.Errno, values ...uint32) []unix.SockFilter {
	return append([]unix.SockFilter{load(offArg(arg))}, amongst(errno, values)...)
}

// typeOneOf is oneOf for a type of socket, whose flags do not count.
func typeOneOf(arg uint32, errno unix.Errno, values ...uint32) []unix.SockFilter {
	mask := unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketType}
	return append([]unix.SockFilter{load(offArg(arg)), mask}, amongst(errno, values)...)
}

// amongst refuses a loaded word that is none of the values.
func amongst(errno unix.Errno, values []uint32) []unix.SockFilter {
	var code []unix.SockFilter
	for i, value := range values {
		over := uint8(len(values) - i) //nolint:gosec // a handful
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: over, K: value})
	}
	return append(code, refusal(errno)...)
}

// noneOf refuses an argument that is one of the values.
func noneOf(arg uint32, errno unix.Errno, values ...uint32) []unix.SockFilter {
	code := []unix.SockFilter{load(offArg(arg))}
	for _, value := range values {
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: value}, answer(refuse(errno)))
	}
	return code
}

// noBits refuses an argument that has one of the bits.
func noBits(arg uint32, errno unix.Errno, bits uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(offArg(arg)), {Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: bits}, answer(refuse(errno)),
	}
}

// isNull refuses a pointer that leads anywhere.
func isNull(arg uint32, errno unix.Errno) []unix.SockFilter {
	code := append([]unix.SockFilter{load(offArg(arg))}, unless(0, refuse(errno))...)
	return append(append(code, load(offArg(arg)+4)), unless(0, refuse(errno))...)
}

// given makes a check only if an argument has a value.
func given(arg, value uint32, check []unix.SockFilter) []unix.SockFilter {
	skip := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(len(check)), K: value} //nolint:gosec // a dozen
	return append([]unix.SockFilter{load(offArg(arg)), skip}, check...)
}

// both makes one check after another.
func both(checks ...[]unix.SockFilter) []unix.SockFilter { return slices.Concat(checks...) }

// pass and refusal end every check.
func pass() []unix.SockFilter                    { return []unix.SockFilter{answer(allow)} }
func refusal(errno unix.Errno) []unix.SockFilter { return []unix.SockFilter{answer(refuse(errno))} }

// load loads a word of the call's description.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// answer ends the filter.
func answer(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// unless answers if the loaded word is not value.
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
