package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sets of Landlock's rights for files.
const (
	fsRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fsUse  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// fsWrite omits device nodes, which give access to more than files.
	fsWrite = fsRead | fsUse | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// fsAll adds devices and sockets of other programs. A program's own sockets need no rule.
	fsAll = fsWrite | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV |
		unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	// fsOnFile are the rights that a rule for a file may have.
	fsOnFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | fsUse | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// signalErratum is the Landlock fix that lets threads of one process signal each other, as Go's scheduler does.
const signalErratum = 2

// netPort is the kernel's struct landlock_net_port_attr.
type netPort struct {
	access, port uint64
}

// landlock returns the version of the interface and its fixed errata, or why there is none.
func landlock() (abi int, errata uint64, why string) {
	query := func(flag uintptr) (uintptr, unix.Errno) {
		r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, flag)
		return r, errno
	}
	r, errno := query(unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errors.Is(errno, unix.ENOSYS):
		return 0, 0, "the kernel has no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK), or a container's filter hides it"
	case errors.Is(errno, unix.EOPNOTSUPP):
		return 0, 0, `Landlock is in the kernel but turned off: "landlock" is not in its boot parameter lsm=`
	case errno != 0:
		return 0, 0, fmt.Sprintf("Landlock cannot be used: %s", errno.Error())
	}
	if bits, errno := query(unix.LANDLOCK_CREATE_RULESET_ERRATA); errno == 0 {
		errata = uint64(bits)
	}
	return int(r), errata, ""
}

// handled returns the file rights that a version of Landlock knows.
func handled(abi int) uint64 {
	rights := uint64(fsAll)
	for since, right := range map[int]uint64{
		abiUnix: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, abiIoctl: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
		abiTruncate: unix.LANDLOCK_ACCESS_FS_TRUNCATE, abiRefer: unix.LANDLOCK_ACCESS_FS_REFER,
	} {
		if abi < since {
			rights &^= right
		}
	}
	return rights
}

type ruleset struct {
	fd     int
	rights uint64 // for files, those that this kernel knows
}

// newRuleset makes a ruleset that allows nothing.
func newRuleset(s Support, n Net) (*ruleset, error) {
	r := &ruleset{rights: handled(s.Landlock)}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: r.rights}
	if s.Landlock >= abiNet && !n.All {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if s.Landlock >= abiScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if s.Signals {
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	var err error
	r.fd, err = create(attr)
	return r, err
}

func create(attr unix.LandlockRulesetAttr) (int, error) {
	// Older kernels accept a longer attribute whose rest is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // how the kernel takes it
	if errno != 0 {
		return -1, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return int(fd), nil
}

// rightsOf translates a kind of access.
func rightsOf(a Access) uint64 { return [...]uint64{0, fsRead, fsUse, fsWrite, fsAll}[a] }

// path allows access to what a path leads to, links followed, and reports whether it could be reached.
func (r *ruleset) path(path string, a Access) (bool, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return true, r.handle(fd, path, a)
}

func (r *ruleset) handle(fd int, path string, a Access) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rightsOf(a) & r.rights, Parent_fd: int32(fd)} //nolint:gosec // descriptors are small
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		attr.Allowed_access &= fsOnFile
	}
	if err := r.add(unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&attr)); err != nil { //nolint:gosec // how the kernel takes it
		return &os.PathError{Op: "landlock_add_rule", Path: path, Err: err}
	}
	return nil
}

// ports allows TCP as granted. If all is granted, no rules may be added.
func (r *ruleset) ports(n Net) error {
	if n.All {
		return nil
	}
	for access, ports := range map[uint64][]uint16{
		unix.LANDLOCK_ACCESS_NET_CONNECT_TCP: n.Connect, unix.LANDLOCK_ACCESS_NET_BIND_TCP: n.Listen,
	} {
		for _, port := range ports {
			attr := netPort{access: access, port: uint64(port)}
			if err := r.add(ruleNetPort, unsafe.Pointer(&attr)); err != nil { //nolint:gosec // how the kernel takes it
				return fmt.Errorf("landlock_add_rule for port %d: %w", port, err)
			}
		}
	}
	return nil
}

// ruleNetPort is the kernel's LANDLOCK_RULE_NET_PORT.
const ruleNetPort = 2

func (r *ruleset) add(kind uintptr, attr unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), kind, uintptr(attr), 0, 0, 0)
	runtime.KeepAlive(attr)
	if errno != 0 {
		return errno
	}
	return nil
}

// restrict puts the calling thread into a new domain.
func (r *ruleset) restrict(flags uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), flags, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}
