package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is a row of the process table.
type process struct {
	id      procID
	parent  int
	zombie  bool // no thread of it runs any more
	threads int
	pages   int64 // resident
	size    int64 // of its addresses, in bytes
}

// procID names one process for as long as the system runs; numbers alone are reused.
type procID struct {
	pid   int
	start uint64 // in clock ticks since the system began
}

// readProcesses returns the processes that began at or after a time, or nil if it could not look.
func readProcesses(since uint64) []process {
	pids := numbersIn("/proc")
	if pids == nil {
		return nil
	}
	list := []process{}
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok && p.id.start >= since {
			list = append(list, p)
		}
	}
	return list
}

func numbersIn(path string) []int {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer closeQuietly(dir)
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func readProcess(pid int) (process, bool) {
	data, err := readProc(pid, "stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, data)
}

// readProc reads a file of a process by bare system calls. Package os takes twice as many, to offer the descriptor to
// the poller, and the table is read several times while a plugin starts and ends.
func readProc(pid int, name string) ([]byte, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	data := make([]byte, 0, 512) // most files fit
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if n <= 0 || err != nil {
			return data, err
		}
		if data = data[:len(data)+n]; len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// parseStat reads /proc/PID/stat. The name may hold parentheses: it ends at the last one.
func parseStat(pid int, data []byte) (process, bool) {
	rest, ok := afterLast(data, ')')
	fields := bytes.Fields(rest)
	// Counted from the state (field 3): parent 4, threads 20, start time 22, size 23, resident pages 24.
	if !ok || len(fields) < 22 {
		return process{}, false
	}
	numbers := [5]uint64{}
	for i, field := range []int{1, 17, 19, 21, 20} {
		n, err := strconv.ParseUint(string(fields[field]), 10, 64)
		if err != nil {
			return process{}, false
		}
		numbers[i] = n
	}
	state := fields[0][0]
	// The first thread, whose state this is, may end before the others.
	zombie := (state == 'Z' || state == 'X') && numbers[1] <= 1
	return process{
		id: procID{pid: pid, start: numbers[2]}, parent: int(numbers[0]), zombie: zombie, //nolint:gosec // the kernel's numbers
		threads: int(numbers[1]), pages: int64(numbers[3]), size: int64(numbers[4]), //nolint:gosec // likewise
	}, true
}

func afterLast(data []byte, sep byte) (after []byte, found bool) {
	i := bytes.LastIndexByte(data, sep)
	return data[i+1:], i >= 0
}

// readMark returns the mark in a process's environment, or "" if it cannot be read.
func readMark(pid int) string {
	data, err := readProc(pid, "environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if v, ok := strings.CutPrefix(string(entry), markKey+"="); ok {
			return v
		}
	}
	return ""
}

// pidNamespace names the namespace of a process's number, or "?".
func pidNamespace(pid string) string {
	name, err := os.Readlink(filepath.Join("/proc", pid, "ns/pid"))
	if err != nil {
		return "?"
	}
	return strings.Trim(strings.TrimPrefix(name, "pid:"), "[]")
}

// isEnding reports whether every thread has begun to end; the system may still be freeing memory.
func isEnding(pid int) bool {
	const exiting = 0x4 // PF_EXITING
	threads := numbersIn("/proc/" + strconv.Itoa(pid) + "/task")
	for _, thread := range threads {
		data, err := readProc(pid, "task/"+strconv.Itoa(thread)+"/stat")
		rest, _ := afterLast(data, ')')
		fields := bytes.Fields(rest)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if len(fields) < 7 {
			return false
		}
		if flags, err := strconv.ParseUint(string(fields[6]), 10, 64); err != nil || flags&exiting == 0 {
			return false
		}
	}
	return len(threads) > 0
}
