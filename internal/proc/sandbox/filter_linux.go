package sandbox

import (
	"math"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter judges system calls by numbers only, since what pointers lead to could change meanwhile.

// Offsets in the kernel's struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// offArg is the offset of the lower half of an argument (filterArch's machines are little-endian).
func offArg(arg uint32) uint32 { return offArgs + 8*arg }

// socketType masks the flags in socket's second argument.
const socketType = 0xf

// x32Bit marks the second system call interface of amd64.
const x32Bit = 0x40000000

// filterArch returns the kernel's name of this machine, or 0 if it has no filter.
func filterArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

func canFilter() bool {
	_, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return filterArch() != 0 && err == nil
}

func refuse(errno unix.Errno) uint32 {
	return unix.SECCOMP_RET_ERRNO | uint32(errno) //nolint:gosec // numbers of errors are small
}

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
		block := slices.Concat(c.check, pass())
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(len(block)), K: c.number}) //nolint:gosec // a dozen
		code = append(code, block...)
	}
	return append(code, pass()...)
}

func callsFor(s Support, p Policy) []call {
	var list []call
	switch {
	case p.Net.All:
	case !p.Net.none():
		list = portCalls()
	case p.NoSockets:
		local := slices.Concat(oneOf(0, unix.EACCES, unix.AF_UNIX), typeOneOf(1, unix.EACCES, unix.SOCK_STREAM, unix.SOCK_SEQPACKET))
		list = []call{{unix.SYS_SENDTO, isNull(4, unix.EACCES)}, {unix.SYS_CONNECT, refusal(unix.EACCES)}, {unix.SYS_SOCKET, refusal(unix.EACCES)}, {unix.SYS_SOCKETPAIR, local}}
	case s.Landlock >= abiUnix || p.writesAll():
		local := oneOf(0, unix.EACCES, unix.AF_UNIX)
		list = []call{{unix.SYS_SOCKET, local}, {unix.SYS_SOCKETPAIR, local}}
	default:
		// Landlock does not judge sockets with a path yet: the program may listen but not connect. An address is
		// given by connect, or with a datagram.
		streams := slices.Concat(oneOf(0, unix.EACCES, unix.AF_UNIX), typeOneOf(1, unix.EACCES, unix.SOCK_STREAM, unix.SOCK_SEQPACKET))
		list = []call{
			{unix.SYS_SENDTO, isNull(4, unix.EACCES)},
			{unix.SYS_CONNECT, refusal(unix.EACCES)},
			{unix.SYS_SOCKET, streams},
			{unix.SYS_SOCKETPAIR, streams},
		}
	}
	return append(list, calls()...)
}

// The functions below make checks. A check answers or falls through.

// oneOf refuses an argument that is not one of the values.
func oneOf(arg uint32, errno unix.Errno, values ...uint32) []unix.SockFilter {
	return append([]unix.SockFilter{load(offArg(arg))}, amongst(errno, values)...)
}

// typeOneOf is oneOf for a socket type, ignoring its flags.
func typeOneOf(arg uint32, errno unix.Errno, values ...uint32) []unix.SockFilter {
	mask := unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketType}
	return append([]unix.SockFilter{load(offArg(arg)), mask}, amongst(errno, values)...)
}

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

func noBits(arg uint32, errno unix.Errno, bits uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(offArg(arg)), {Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: bits}, answer(refuse(errno)),
	}
}

// isNull refuses a pointer that is not nil.
func isNull(arg uint32, errno unix.Errno) []unix.SockFilter {
	code := append([]unix.SockFilter{load(offArg(arg))}, unless(0, refuse(errno))...)
	return append(append(code, load(offArg(arg)+4)), unless(0, refuse(errno))...)
}

// given applies a check only if an argument has the value.
func given(arg, value uint32, check []unix.SockFilter) []unix.SockFilter {
	skip := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(len(check)), K: value} //nolint:gosec // a dozen
	return append([]unix.SockFilter{load(offArg(arg)), skip}, check...)
}

func pass() []unix.SockFilter { return []unix.SockFilter{answer(unix.SECCOMP_RET_ALLOW)} }

func refusal(errno unix.Errno) []unix.SockFilter { return []unix.SockFilter{answer(refuse(errno))} }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func answer(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// unless answers if the loaded word is not value.
func unless(value, verdict uint32) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: value}, answer(verdict)}
}

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

// Landlock knows files, TCP ports, tracing and signals. What else reaches another process, or the machine, by a
// number in a call's arguments is judged here. Calls that are in no row pass: either Landlock or the kernel's own
// rules keep them inside (kill, ptrace, process_vm_writev, pidfd_getfd, move_pages; waitid and setpgid reach children
// only), or they only read what ps shows (getpriority, sched_getaffinity, capget). The tests make each of them.

// call is a system call that does not always pass: it passes if check comes to its end.
type call struct {
	number uint32
	check  []unix.SockFilter
}

// newNamespaces are the flags that ask for namespaces. One of users would give its maker all capabilities in
// it, and with them the parts of the kernel that are least tested against hostile programs.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

const (
	ioprioProcess  = 1                    // the kernel's IOPRIO_WHO_PROCESS
	fSetDelegation = unix.F_SETLEASE + 16 // F_SETDELEG of Linux 6.19: a lease, of directories too
)

// calls is the table for every program. Those that are often made come first.
func calls() []call {
	list := []call{
		// Keystrokes for whoever reads the terminal next.
		{unix.SYS_IOCTL, noneOf(1, unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX)},
		// Opening the file would wait for its holder, as long as /proc/sys/fs/lease-break-time.
		{unix.SYS_FCNTL, noneOf(1, unix.EACCES, unix.F_SETLEASE, fSetDelegation)},
		{unix.SYS_CLONE, noBits(0, unix.EPERM, newNamespaces)},
		{unix.SYS_UNSHARE, noBits(0, unix.EPERM, newNamespaces|unix.CLONE_NEWTIME)},
		// Everything else may belong to another process of the user: the host's limits, priorities and processors. A
		// thread's own number is a number like any other, so that a thread changes itself by 0 alone.
		{unix.SYS_PRLIMIT64, slices.Concat(oneOf(0, unix.EPERM, 0), given(1, unix.RLIMIT_LOCKS, isNull(2, unix.EPERM)))},
		// The host finds a plugin's processes by this limit, which has no other use.
		{unix.SYS_SETRLIMIT, noneOf(0, unix.EPERM, unix.RLIMIT_LOCKS)},
		{unix.SYS_SCHED_SETAFFINITY, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SCHED_SETSCHEDULER, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SCHED_SETPARAM, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SCHED_SETATTR, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SETPRIORITY, slices.Concat(oneOf(0, unix.EPERM, unix.PRIO_PROCESS), oneOf(1, unix.EPERM, 0))},
		{unix.SYS_IOPRIO_SET, slices.Concat(oneOf(0, unix.EPERM, ioprioProcess), oneOf(1, unix.EPERM, 0))},
	}
	for _, number := range []uint32{
		// A ring makes calls that no filter sees.
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, // of the user
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_SYSLOG, unix.SYS_FANOTIFY_INIT, // look at the whole machine
		unix.SYS_OPEN_BY_HANDLE_AT,                                                                                    // opens without a path
		unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, // what namespaces are for
		unix.SYS_USERFAULTFD, // stops the kernel halfway, for whoever exploits it
	} {
		list = append(list, call{number, refusal(unix.EPERM)})
	}
	for _, number := range []uint32{
		// Its flags lie behind a pointer: namespaces, and another control group. Libraries fall back to clone.
		unix.SYS_CLONE3,
		// System V objects and message queues have the user's rights and no path
		// that Landlock could judge. The error is that of a kernel without them.
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	} {
		list = append(list, call{number, refusal(unix.ENOSYS)})
	}
	return list
}

// portCalls is the table for a program that was granted ports. Landlock judges
// connect and bind: what opens a connection otherwise is refused.
func portCalls() []call {
	const tcp = unix.IPPROTO_TCP
	return []call{
		{unix.SYS_SENDTO, noBits(3, unix.EOPNOTSUPP, unix.MSG_FASTOPEN)},
		{unix.SYS_SENDMSG, noBits(2, unix.EOPNOTSUPP, unix.MSG_FASTOPEN)},
		{unix.SYS_SENDMMSG, noBits(3, unix.EOPNOTSUPP, unix.MSG_FASTOPEN)},
		{unix.SYS_SETSOCKOPT, given(1, tcp, noneOf(2, unix.ENOPROTOOPT,
			unix.TCP_FASTOPEN, unix.TCP_FASTOPEN_CONNECT, unix.TCP_REPAIR, unix.TCP_ULP))},
		{unix.SYS_SOCKET, internetSocket()},
		{unix.SYS_SOCKETPAIR, oneOf(0, unix.EACCES, unix.AF_UNIX)},
	}
}

// internetSocket lets the families and protocols pass that Landlock judges, and datagrams. Landlock knows TCP
// alone: what else connects to a port, such as MPTCP and SCTP, may not be had, neither by its number nor by a
// type that stands for it.
func internetSocket() []unix.SockFilter {
	return slices.Concat(
		oneOf(0, unix.EACCES, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK),
		// Addresses of the machine's own interfaces, which resolvers look at.
		given(0, unix.AF_NETLINK, slices.Concat(oneOf(2, unix.EPROTONOSUPPORT, unix.NETLINK_ROUTE), pass())),
		given(0, unix.AF_UNIX, pass()),
		typeOneOf(1, unix.EPROTONOSUPPORT, unix.SOCK_STREAM, unix.SOCK_DGRAM),
		oneOf(2, unix.EPROTONOSUPPORT, unix.IPPROTO_IP, unix.IPPROTO_TCP, unix.IPPROTO_UDP),
	)
}
