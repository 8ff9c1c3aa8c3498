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
	// maxLooked bounds how many descriptors of one plugin a look examines. Of one
	// that has more, each look takes another part.
	maxLooked = 1 << 15
	// maxMaps bounds how much of a process's list of mappings is read.
	maxMaps = 8 << 20
)

// inode names a file.
type inode struct{ dev, ino uint64 }

// segments are files in memory, with the bytes that each holds.
type segments map[inode]int64

// size sums them up.
func (s segments) size() (sum int64) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// sharedMemory returns how many bytes shared memory and files in memory take on
// this machine, whoever holds them: one system call.
func sharedMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit) //nolint:gosec // less than the machine's memory
}

// segmentsOf returns the files in memory that processes hold: those that are open
// (memfds and files of a tmpfs, also deleted ones), the System V segments that they
// have made, and shared memory that is mapped, resident or not. It ends early when its
// time is over.
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

// addMapped adds shared memory of the kernel's own file system (anonymous, memfds and
// System V segments) that a process has mapped. How much of it there is takes the
// powers of root to see.
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

// mapName is the name of a mapping among map_files, which have no zeros in front.
func mapName(addresses string) string {
	from, to, _ := strings.Cut(addresses, "-")
	return strings.TrimLeft(from, "0") + "-" + strings.TrimLeft(to, "0")
}

// addOpen adds the files in memory that a process holds open, of at most budget
// descriptors and until its time is over, and returns how many it looked at. It asks a file system nothing before
// it knows that this is one in memory: a plugin can mount one that never answers.
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

// addSystemV adds the System V segments that processes have made.
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

// parseSegment reads a line of /proc/sysvipc/shm: the segment's number, who made
// it, and what it holds in memory and on disk.
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

// kernelMount returns the number of the file system in which the kernel keeps
// memfds and System V segments.
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

// unsegmentedSize is proportionalSize without what a process has mapped of the
// segments. If it cannot be told (too many mappings), those are counted too.
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

// parseMaps sums up the lines "Pss: 12 kB" of the mappings in /proc/PID/smaps
// that are not of a held segment. A mapping begins with a line like
// "7f0a-7f0b rw-s 00000000 00:01 1234 /memfd:name (deleted)".
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

// mappedInode reads the columns "00:01" and "1234" of a mapping.
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
