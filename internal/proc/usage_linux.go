package proc

import (
	"os"
	"strconv"
)

// measure is Measure for families; nil is one that has not begun.
func measure(families []*family) ([]Usage, bool) {
	since := ^uint64(0)
	for _, f := range families {
		if f != nil {
			since = min(since, f.root.start)
		}
	}
	table := readProcesses(since)
	list := make([]Usage, len(families))
	for i, f := range families {
		if f != nil {
			list[i] = f.usage(table)
		}
	}
	return list, true
}

// usage sums up the living members of a family, and remembers them.
func (f *family) usage(table []process) Usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	roots := map[procID]bool{f.root: true}
	for id := range f.known {
		roots[id] = true
	}
	var u Usage
	for id, p := range f.closure(table, roots) {
		if p.zombie {
			continue
		}
		f.known[id] = true
		u.Processes++
		u.Threads += p.threads
		u.RSS += p.pages * int64(os.Getpagesize())
		u.Descriptors += countDescriptors(id.pid)
	}
	return u
}

// countDescriptors returns how many descriptors a process has open; 0 if that
// may not be looked at.
func countDescriptors(pid int) int {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return 0
	}
	defer closeQuietly(dir)
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return len(names)
}
