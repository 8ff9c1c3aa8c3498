package sandbox

import "golang.org/x/sys/unix"

// Landlock knows files, TCP ports, tracing and signals. What else reaches another
// process, or the machine, by a number in a call's arguments is judged here. Calls
// that are in no row pass: either Landlock or the kernel's own rules keep them
// inside (kill, ptrace, process_vm_writev, pidfd_getfd, move_pages; waitid and
// setpgid reach children only), or they only read what ps shows (getpriority,
// sched_getaffinity, capget). The tests make each of them.

// call is a system call that does not always pass: it passes if check comes to
// its end.
type call struct {
	number uint32
	check  []unix.SockFilter
}

// newNamespaces are the flags that ask for namespaces. One of users would give
// its maker all capabilities in it, and with them the parts of the kernel that
// are least tested against hostile programs.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// ioprioProcess is the kernel's IOPRIO_WHO_PROCESS.
const ioprioProcess = 1

// fSetDelegation is F_SETDELEG of Linux 6.19: a lease by another name, of folders too.
const fSetDelegation = unix.F_SETLEASE + 16

// calls is the table for every program. Those that are often made come first.
func calls() []call {
	list := []call{
		// Keystrokes for whoever reads the terminal next.
		{unix.SYS_IOCTL, noneOf(1, unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX)},
		// Who opens the file would wait for its holder, as long as /proc/sys/fs/lease-break-time.
		{unix.SYS_FCNTL, noneOf(1, unix.EACCES, unix.F_SETLEASE, fSetDelegation)},
		{unix.SYS_CLONE, noBits(0, unix.EPERM, newNamespaces)},
		{unix.SYS_UNSHARE, noBits(0, unix.EPERM, newNamespaces|unix.CLONE_NEWTIME)},
		// Everything else may belong to another process of the user: the host's
		// limits, priorities and processors. A thread's own number is a number
		// like any other, so that a thread changes itself by 0 alone.
		{unix.SYS_PRLIMIT64, both(oneOf(0, unix.EPERM, 0), given(1, unix.RLIMIT_LOCKS, isNull(2, unix.EPERM)))},
		// The host finds a plugin's processes by this limit, which has no other use.
		{unix.SYS_SETRLIMIT, noneOf(0, unix.EPERM, unix.RLIMIT_LOCKS)},
		{unix.SYS_SCHED_SETAFFINITY, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SCHED_SETSCHEDULER, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SCHED_SETPARAM, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SCHED_SETATTR, oneOf(0, unix.EPERM, 0)},
		{unix.SYS_SETPRIORITY, both(oneOf(0, unix.EPERM, unix.PRIO_PROCESS), oneOf(1, unix.EPERM, 0))},
		{unix.SYS_IOPRIO_SET, both(oneOf(0, unix.EPERM, ioprioProcess), oneOf(1, unix.EPERM, 0))},
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
		// Its flags lie behind a pointer: namespaces, and another control group. Libraries
		// fall back to clone.
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

// internetSocket lets the families and protocols pass that Landlock judges, and
// datagrams. Landlock knows TCP alone: what else connects to a port, such as
// MPTCP and SCTP, may not be had, neither by its number nor by a type that
// stands for it.
func internetSocket() []unix.SockFilter {
	return both(
		oneOf(0, unix.EACCES, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK),
		// Addresses of the machine's own interfaces, which resolvers look at.
		given(0, unix.AF_NETLINK, both(oneOf(2, unix.EPROTONOSUPPORT, unix.NETLINK_ROUTE), pass())),
		given(0, unix.AF_UNIX, pass()),
		typeOneOf(1, unix.EPROTONOSUPPORT, unix.SOCK_STREAM, unix.SOCK_DGRAM),
		oneOf(2, unix.EPROTONOSUPPORT, unix.IPPROTO_IP, unix.IPPROTO_TCP, unix.IPPROTO_UDP),
	)
}

// localCalls is the table for a program without network: its sockets are of the
// unix family.
func localCalls() []call {
	return []call{
		{unix.SYS_SOCKET, oneOf(0, unix.EACCES, unix.AF_UNIX)},
		{unix.SYS_SOCKETPAIR, oneOf(0, unix.EACCES, unix.AF_UNIX)},
	}
}

// listenerCalls is the table for a program without network on a kernel whose
// Landlock does not judge sockets with a path: it may listen and not connect.
// An address is given by connect, or with a datagram.
func listenerCalls() []call {
	streams := both(oneOf(0, unix.EACCES, unix.AF_UNIX), typeOneOf(1, unix.EACCES, unix.SOCK_STREAM, unix.SOCK_SEQPACKET))
	return []call{
		{unix.SYS_SENDTO, isNull(4, unix.EACCES)},
		{unix.SYS_CONNECT, refusal(unix.EACCES)},
		{unix.SYS_SOCKET, streams},
		{unix.SYS_SOCKETPAIR, streams},
	}
}
