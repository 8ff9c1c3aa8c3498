package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

// run interprets a filter for one call, as the kernel does.
func run(code []unix.SockFilter, arch, number uint32, args [6]uint64) uint32 {
	data := map[uint32]uint32{offArch: arch, offNumber: number}
	for i, arg := range args {
		data[offArg(uint32(i))], data[offArg(uint32(i))+4] = uint32(arg), uint32(arg>>32)
	}
	var a uint32
	for pc := 0; pc < len(code); pc++ {
		in, jump := code[pc], false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = data[in.K]
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump = a == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump = a >= in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump = a&in.K != 0
		}
		if jump {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	return 0 // the kernel refuses such a filter
}

// attempted is a call, and what the filter answers in four policies: no network
// on a kernel before and with abiUnix, a port, and all of it.
type attempted struct {
	name                      string
	number                    uint32
	args                      [6]uint64
	none, inDomain, port, all unix.Errno
}

// everywhere is the same answer in all four.
func everywhere(name string, errno unix.Errno, number uint32, args ...uint64) attempted {
	c := attempted{name: name, number: number, none: errno, inDomain: errno, port: errno, all: errno}
	copy(c.args[:], args)
	return c
}

// attemptedCalls is the table of TestFilter.
func attemptedCalls() []attempted {
	const (
		no, stream, dgram = unix.EACCES, unix.SOCK_STREAM, unix.SOCK_DGRAM
		odd               = unix.EPROTONOSUPPORT
		other, high       = 4711, 1 << 32
	)
	socket := func(name string, none, inDomain, port unix.Errno, args ...uint64) attempted {
		c := attempted{name: name, number: unix.SYS_SOCKET, none: none, inDomain: inDomain, port: port}
		copy(c.args[:], args)
		return c
	}
	list := []attempted{
		everywhere("reading", 0, unix.SYS_READ),
		everywhere("ring", unix.EPERM, unix.SYS_IO_URING_SETUP),
		everywhere("keys", unix.EPERM, unix.SYS_KEYCTL),
		everywhere("shared memory", unix.ENOSYS, unix.SYS_SHMAT),
		everywhere("own limits", 0, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE),
		everywhere("another's limits", unix.EPERM, unix.SYS_PRLIMIT64, other),
		everywhere("own limits by an upper half that the kernel ignores", 0, unix.SYS_PRLIMIT64, high),
		everywhere("reading the tag", 0, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, 0, 1),
		everywhere("changing the tag", unix.EPERM, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, 1<<40),
		everywhere("changing the tag in the old way", unix.EPERM, unix.SYS_SETRLIMIT, unix.RLIMIT_LOCKS, 1),
		everywhere("own priority", 0, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0),
		everywhere("another's priority", unix.EPERM, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, other),
		everywhere("the group's priority", unix.EPERM, unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 0),
		everywhere("the user's priority", unix.EPERM, unix.SYS_SETPRIORITY, unix.PRIO_USER, 0),
		everywhere("a thread", 0, unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_THREAD|unix.CLONE_SIGHAND),
		everywhere("a process", 0, unix.SYS_CLONE, uint64(unix.SIGCHLD)),
		everywhere("a namespace", unix.EPERM, unix.SYS_CLONE, uint64(unix.SIGCHLD)|unix.CLONE_NEWUSER),
		everywhere("a namespace of its own", unix.EPERM, unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		everywhere("descriptors of its own", 0, unix.SYS_UNSHARE, unix.CLONE_FILES),
		everywhere("flags behind a pointer", unix.ENOSYS, unix.SYS_CLONE3, 1<<40, 88),
		everywhere("a lease, which delays who opens the file", unix.EACCES, unix.SYS_FCNTL, 3, unix.F_SETLEASE, unix.F_WRLCK),
		everywhere("a delegation", unix.EACCES, unix.SYS_FCNTL, 3, fSetDelegation),
		everywhere("a lock", 0, unix.SYS_FCNTL, 3, unix.F_SETLK),
		everywhere("size of a terminal", 0, unix.SYS_IOCTL, 1, unix.TIOCGWINSZ),
		everywhere("keystrokes", unix.EPERM, unix.SYS_IOCTL, 1, unix.TIOCSTI),
		everywhere("keystrokes, with bits that the kernel ignores", unix.EPERM, unix.SYS_IOCTL, 1, high|unix.TIOCSTI),
		{"connect", unix.SYS_CONNECT, [6]uint64{3, high}, no, 0, 0, 0},
		{"send", unix.SYS_SENDTO, [6]uint64{3, 1, 1}, 0, 0, 0, 0},
		{"send to", unix.SYS_SENDTO, [6]uint64{3, 1, 1, 0, 1}, no, 0, 0, 0},
		{"send to an address whose lower half is zero", unix.SYS_SENDTO, [6]uint64{3, 1, 1, 0, high}, no, 0, 0, 0},
		{"connect by sendto", unix.SYS_SENDTO, [6]uint64{3, 1, 1, unix.MSG_FASTOPEN, 1}, no, 0, unix.EOPNOTSUPP, 0},
		{"connect by sendmsg", unix.SYS_SENDMSG, [6]uint64{3, 1, unix.MSG_FASTOPEN}, 0, 0, unix.EOPNOTSUPP, 0},
		{"connect by sendmmsg", unix.SYS_SENDMMSG, [6]uint64{3, 1, 1, unix.MSG_FASTOPEN}, 0, 0, unix.EOPNOTSUPP, 0},
		{"an option", unix.SYS_SETSOCKOPT, [6]uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, 0, 0, 0, 0},
		{"an option of that number for others", unix.SYS_SETSOCKOPT, [6]uint64{3, unix.SOL_SOCKET, unix.TCP_ULP}, 0, 0, 0, 0},
		{"another protocol over TCP", unix.SYS_SETSOCKOPT, [6]uint64{3, unix.IPPROTO_TCP, unix.TCP_ULP}, 0, 0, unix.ENOPROTOOPT, 0},
		{"connect by an option", unix.SYS_SETSOCKOPT, [6]uint64{3, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, 0, 0, unix.ENOPROTOOPT, 0},
		{"pair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, stream | unix.SOCK_CLOEXEC}, 0, 0, 0, 0},
		{"pair of datagrams", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, dgram}, no, 0, 0, 0},
		{"pair of another family", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_TIPC, stream}, no, no, no, 0},
		socket("unix", 0, 0, 0, unix.AF_UNIX, stream|unix.SOCK_NONBLOCK),
		socket("unix datagrams", no, 0, 0, unix.AF_UNIX, dgram),
		socket("unix datagrams by another name", no, 0, 0, unix.AF_UNIX, unix.SOCK_RAW),
		socket("TCP", no, no, 0, unix.AF_INET, stream|unix.SOCK_CLOEXEC, 0),
		socket("TCP by name", no, no, 0, unix.AF_INET6, stream, unix.IPPROTO_TCP),
		socket("datagrams", no, no, 0, unix.AF_INET6, dgram|unix.SOCK_NONBLOCK, 0),
		socket("MPTCP", no, no, odd, unix.AF_INET, stream, unix.IPPROTO_MPTCP),
		socket("SMC", no, no, odd, unix.AF_INET, stream, 256),
		socket("SCTP by its type", no, no, odd, unix.AF_INET, unix.SOCK_SEQPACKET, 0),
		socket("raw", no, no, odd, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP),
		socket("routes", no, no, 0, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		socket("packet filters", no, no, odd, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
		socket("between virtual machines", no, no, no, unix.AF_VSOCK, stream, 0),
		socket("packets", no, no, no, unix.AF_PACKET, unix.SOCK_RAW, 0),
	}
	return list
}

func TestFilter(t *testing.T) {
	t.Parallel()

	here := filterArch()
	if here == 0 {
		t.Skip("no filter for this machine")
	}
	before, with := Support{Landlock: abiUnix - 1}, Support{Landlock: abiUnix}
	some, all := Policy{Net: Net{Listen: []uint16{443}}}, Policy{Net: Net{All: true}}
	for _, tt := range attemptedCalls() {
		for _, c := range []struct {
			system Support
			policy Policy
			want   unix.Errno
		}{
			{before, Policy{}, tt.none},
			{before, Policy{Write: []string{"/"}}, tt.inDomain},
			{with, Policy{}, tt.inDomain},
			{before, some, tt.port},
			{before, all, tt.all},
		} {
			want := uint32(unix.SECCOMP_RET_ALLOW)
			if c.want != 0 {
				want = refuse(c.want)
			}
			code := filterFor(c.system, c.policy)
			if got := run(code, here, tt.number, tt.args); got != want {
				t.Errorf("%s, %+v, Landlock %d: %#x, want %#x", tt.name, c.policy, c.system.Landlock, got, want)
			}
			if got := run(code, here^1, tt.number, tt.args); got != refuse(unix.ENOSYS) {
				t.Errorf("%s by another interface: %#x", tt.name, got)
			}
		}
	}
	for _, system := range []Support{before, with} {
		code := filterFor(system, Policy{NoSockets: true, Write: []string{"/"}})
		for _, tt := range []struct {
			number uintptr
			args   [6]uint64
			want   uint32
		}{
			{unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, refuse(unix.EACCES)},
			{unix.SYS_CONNECT, [6]uint64{}, refuse(unix.EACCES)},
			{unix.SYS_SENDTO, [6]uint64{4: 1}, refuse(unix.EACCES)},
			{unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, refuse(unix.EACCES)},
			{unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, unix.SECCOMP_RET_ALLOW},
		} {
			if got := run(code, here, uint32(tt.number), tt.args); got != tt.want {
				t.Errorf("without sockets: call %d of %v: %#x, want %#x", tt.number, tt.args, got, tt.want)
			}
		}
	}
	if here == unix.AUDIT_ARCH_X86_64 {
		if got := run(filterFor(before, Policy{}), here, unix.SYS_READ|x32Bit, [6]uint64{}); got != refuse(unix.ENOSYS) {
			t.Errorf("by x32: %#x", got)
		}
	}
}
