package proc

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mounts are numbers of mounts whose files are in memory alone. They count for the whole
// system, whatever namespace a mount is in.
type mounts map[string]bool

// memoryMounts returns this process's mounts and the kernel's own, in which memfds are
// and which no list has.
func memoryMounts() mounts {
	m := mounts{}
	for _, flags := range []int{0, unix.MFD_HUGETLB} {
		fd, err := unix.MemfdCreate("", flags|unix.MFD_CLOEXEC)
		if err != nil {
			continue
		}
		m[mountOf(os.Getpid(), strconv.Itoa(fd))] = true
		_ = unix.Close(fd)
	}
	m.addOf("self")
	return m
}

// addOf adds the mounts in a process's namespace.
func (m mounts) addOf(pid string) {
	file, err := os.Open("/proc/" + pid + "/mountinfo")
	if err != nil {
		return
	}
	defer closeQuietly(file)
	m.parse(io.LimitReader(file, maxMaps))
}

// parse reads lines like "36 35 0:32 / /dev/shm rw - tmpfs none rw".
func (m mounts) parse(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		id, rest, _ := bytes.Cut(lines.Bytes(), []byte{' '})
		_, rest, _ = bytes.Cut(rest, []byte(" - "))
		switch kind, _, _ := bytes.Cut(rest, []byte{' '}); string(kind) {
		case "tmpfs", "hugetlbfs", "ramfs":
			m[string(id)] = true
		}
	}
}

// has reports whether a file that a process has open, by its name in the process's
// directory of descriptors, is in memory. It asks no file system. What has no path (a
// socket, an epoll instance) is not looked at closer: even the kernel's note on it can
// wait for what a plugin holds back.
func (m mounts) has(pid int, dir *os.File, name string) bool {
	var first [1]byte
	if n, err := unix.Readlinkat(int(dir.Fd()), name, first[:]); n == 0 || err != nil || first[0] != '/' && first[0] != '(' {
		return false
	}
	return m[mountOf(pid, name)]
}

// mountOf returns the number of the mount of an open file; "" if the system does not say.
func mountOf(pid int, descriptor string) string {
	data, err := readProc(pid, "fdinfo/"+descriptor)
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(data, []byte("mnt_id:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}
