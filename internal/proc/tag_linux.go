package proc

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A tag is a value of RLIMIT_LOCKS, a limit that the kernel keeps for each
// process but has not enforced since Linux 2.4. Children inherit it, whatever
// else they change: session, environment, parent, program, user namespace. The
// hard limit says which host it is, the soft limit which plugin process. Without
// CAP_SYS_RESOURCE a process can lower it but not set it to what it was.
//
// Reading a tag is one system call, needs no descriptor, and works for
// processes whose /proc entries their user may not read.
type tag = unix.Rlimit

const (
	// tagBit is set in the hard limit of each tag, and in no soft limit.
	tagBit = 1 << 62
	// hostBits is how much of a hard limit says which host; what is between
	// them says in which namespace.
	hostBits = 42
)

// tagFor returns the tag of the processes that bear a mark.
func tagFor(mark string) tag {
	host, _ := hostOf(mark)
	namespace := host[strings.LastIndexByte(host, '.')+1:]
	return tag{Cur: hash64(mark) >> 3, Max: hostTag(host, namespace)}
}

// hostTag returns the hard limit for the plugins of a host.
func hostTag(identity, namespace string) uint64 {
	return namespaceTag(namespace) | hash64(identity)>>(64-hostBits)
}

// namespaceTag is the part of hostTag that says in which namespace a host has
// its number.
func namespaceTag(namespace string) uint64 {
	return tagBit | hash64(namespace)>>2>>hostBits<<hostBits
}

func hash64(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

// tagProcess gives a process that was just started the tag of its mark.
func tagProcess(pid int, mark string) { setTag(pid, tagFor(mark)) }

// setTag tags a process. Where that is refused (a host that is itself under
// such a limit), the other ties have to do.
func setTag(pid int, t tag) { _ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &t, nil) }

// readTag returns the tag of a process, or what else its limit is.
func readTag(pid int) tag {
	var t tag
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &t) != nil {
		return tag{}
	}
	return t
}

// livingHosts returns the hard limits that the plugins of each living process,
// if it were a host, would have. Whoever tagged this process counts as alive: it
// must not end its own ancestors.
func livingHosts(table []process, namespace string) map[uint64]bool {
	hosts := map[uint64]bool{readTag(os.Getpid()).Max: true}
	for _, p := range table {
		if !p.zombie {
			hosts[hostTag(identity(p.id.pid, p.id.start, namespace), namespace)] = true
		}
	}
	return hosts
}
