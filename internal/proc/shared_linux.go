package proc

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxLooked bounds the descriptors of one plugin that a look examines; each look takes other ones.
	maxLooked = 1 << 15
	maxMaps   = 8 << 20 // maxMaps bounds how much of a list of mappings is read
)

type inode struct{ dev, ino uint64 }

// segments are files in memory, with the bytes that each holds.
type segments map[inode]int64

func (s segments) size() (sum int64) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// sharedMemory returns the size of all shared memory and files in memory of this machine: one system call.
func sharedMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit) //nolint:gosec // less than the machine's memory
}

// segmentsOf returns the files in memory that processes hold: open ones (memfds, files of a tmpfs, deleted ones
// too), their System V segments, and mapped shared memory, resident or not. It stops at end.
func segmentsOf(members map[procID]process, end time.Time) segments {
	held, kernel := segments{}, kernelMount()
	held.addSystemV(members, kernel)
	budget := maxLooked
	inMemory, namespaces := memoryMounts(), map[string]bool{}
	for id := range members {
		if budget <= 0 || time.Now().After(end) {
			break
		}
		if name, err := os.Readlink("/proc/" + strconv.Itoa(id.pid) + "/ns/mnt"); err == nil && !namespaces[name] {
			namespaces[name] = true
			inMemory.addOf(strconv.Itoa(id.pid))
		}
		budget -= held.addOpen(id.pid, budget, inMemory, end)
		held.addMapped(id.pid, kernel, end)
	}
	return held
}

// addMapped adds mapped shared memory of the kernel's own file system. Only root sees its size.
func (s segments) addMapped(pid int, kernel uint64, end time.Time) {
	dir := "/proc/" + strconv.Itoa(pid)
	file, err := os.Open(dir + "/maps")
	if err != nil {
		return
	}
	defer closeQuietly(file)
	lines := bufio.NewScanner(io.LimitReader(file, maxMaps))
	for lines.Scan() {
		fields := bytes.Fields(lines.Bytes())
		if time.Now().After(end) {
			return
		}
		if len(fields) < 6 {
			continue
		}
		id := mappedInode(fields[3], fields[4])
		if _, known := s[id]; known || id.dev != kernel {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(dir+"/map_files/"+mapName(string(fields[0])), &st) == nil && st.Dev == id.dev && st.Ino == id.ino {
			s[id] = st.Blocks * 512
		}
	}
}

// mapName is the name in map_files, which has no leading zeros.
func mapName(addresses string) string {
	from, to, _ := strings.Cut(addresses, "-")
	return strings.TrimLeft(from, "0") + "-" + strings.TrimLeft(to, "0")
}

// addOpen adds the files in memory that a process holds open and returns how many descriptors it examined, at
// most budget. It asks a file system nothing until it knows that it is one in memory: a plugin can mount one
// that never answers.
func (s segments) addOpen(pid, budget int, inMemory mounts, end time.Time) int {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return 0
	}
	defer closeQuietly(dir)
	names, err := dir.Readdirnames(-1)
	if err != nil || len(names) == 0 {
		return 0
	}
	start, looked := rand.IntN(len(names)), min(budget, len(names))
	for i := range looked {
		if time.Now().After(end) {
			return i
		}
		name := names[(start+i)%len(names)]
		var st unix.Stat_t
		if !inMemory.has(pid, dir, name) || unix.Fstatat(int(dir.Fd()), name, &st, 0) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Blocks == 0 {
			continue
		}
		s[inode{st.Dev, st.Ino}] = st.Blocks * 512
	}
	return looked
}

func (s segments) addSystemV(members map[procID]process, kernel uint64) {
	data, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return
	}
	pids := map[int]bool{}
	for id := range members {
		pids[id.pid] = true
	}
	for line := range bytes.Lines(data) {
		if id, creator, size, ok := parseSegment(line); ok && pids[creator] {
			s[inode{kernel, id}] = size
		}
	}
}

// parseSegment reads a line of /proc/sysvipc/shm: number, creator, and bytes in memory and swap.
func parseSegment(line []byte) (id uint64, creator int, size int64, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) < 16 {
		return 0, 0, 0, false
	}
	id, err := strconv.ParseUint(string(fields[1]), 10, 64)
	creator, errCreator := strconv.Atoi(string(fields[4]))
	rss, errRSS := strconv.ParseInt(string(fields[14]), 10, 64)
	swap, errSwap := strconv.ParseInt(string(fields[15]), 10, 64)
	return id, creator, rss + swap, err == nil && errCreator == nil && errRSS == nil && errSwap == nil
}

// kernelMount returns the device in which the kernel keeps memfds and System V segments.
func kernelMount() uint64 {
	fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Dev
}

// unsegmentedSize is proportionalSize without the mapped segments, unless there are too many mappings to read.
func unsegmentedSize(pid int, held segments) int64 {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/smaps")
	if len(held) == 0 || err != nil {
		return proportionalSize(pid)
	}
	defer closeQuietly(file)
	part := &io.LimitedReader{R: file, N: maxMaps}
	sum, err := parseMaps(part, held)
	if err != nil || part.N <= 0 {
		return proportionalSize(pid)
	}
	return sum
}

// parseMaps sums up "Pss: 12 kB" in /proc/PID/smaps for mappings that are not of a held segment. A mapping
// begins with a line like "7f0a-7f0b rw-s 00000000 00:01 1234 /memfd:name (deleted)".
func parseMaps(r io.Reader, held segments) (sum int64, err error) {
	skip := false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Bytes()
		if n, ok := parsePSS(line); ok {
			if !skip {
				sum += n
			}
			continue
		}
		if fields := bytes.Fields(line); len(fields) >= 5 && bytes.IndexByte(fields[3], ':') > 0 {
			_, skip = held[mappedInode(fields[3], fields[4])]
		}
	}
	return sum, lines.Err()
}

func mappedInode(dev, ino []byte) inode {
	major, minor, _ := bytes.Cut(dev, []byte{':'})
	maj, errMajor := strconv.ParseUint(string(major), 16, 32)
	mnr, errMinor := strconv.ParseUint(string(minor), 16, 32)
	n, err := strconv.ParseUint(string(ino), 10, 64)
	if err != nil || errMajor != nil || errMinor != nil {
		return inode{}
	}
	return inode{unix.Mkdev(uint32(maj), uint32(mnr)), n}
}

// mounts are numbers of mounts whose files are in memory. Numbers are unique across namespaces.
type mounts map[string]bool

// memoryMounts returns this process's mounts and the kernel's own, where memfds are and which no list has.
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

func (m mounts) addOf(pid string) {
	file, err := os.Open("/proc/" + pid + "/mountinfo")
	if err != nil {
		return
	}
	defer closeQuietly(file)
	m.parse(io.LimitReader(file, maxMaps))
}

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

// has reports whether an open file of a process is in memory. It asks no file system. What has no path (a
// socket, an epoll instance) is skipped: even its fdinfo can block on what a plugin holds back.
func (m mounts) has(pid int, dir *os.File, name string) bool {
	var first [1]byte
	if n, err := unix.Readlinkat(int(dir.Fd()), name, first[:]); n == 0 || err != nil || first[0] != '/' && first[0] != '(' {
		return false
	}
	return m[mountOf(pid, name)]
}

// mountOf returns the number of an open file's mount, or "".
func mountOf(pid int, descriptor string) string {
	data, err := readProc(pid, "fdinfo/"+descriptor)
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(data, []byte("mnt_id:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}
