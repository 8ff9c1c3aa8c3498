package proc

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// measure is Measure for families with their limits of memory, 0 for none; nil
// is one that has not begun.
func measure(families []*family, limits []int64) ([]Usage, bool) {
	if len(families) == 0 || !canExecHandle() { // it stands for /proc
		return make([]Usage, len(families)), canExecHandle()
	}
	since := ^uint64(0)
	for _, f := range families {
		if f != nil {
			since = min(since, f.root.start)
		}
	}
	table, shared := readProcesses(since), sharedMemory()
	list := make([]Usage, len(families))
	for i, f := range families {
		if f != nil {
			list[i] = f.usage(table, limits[i], shared)
		}
	}
	return list, true
}

// usage sums up the living members of a family, and remembers them and no
// others: a plugin may start a program for each of its calls. The table may lack
// some, since it is older than what is known, or since this process had no
// descriptor free to read it: they are forgotten when it is certain that they
// have ended. Nothing else may lead to them any more.
//
// shared is all shared memory of this machine. Only if the family could be over
// its limit with that is it looked for, and only if it is over its limit with
// what it holds of it is everything counted exactly once.
func (f *family) usage(table []process, limit, shared int64) Usage {
	roots := f.members()
	f.reapOrphans(table, roots)
	members := f.closure(table, roots)
	maps.DeleteFunc(members, func(_ procID, p process) bool { return p.zombie })
	known := f.update(members)
	var u Usage
	for id, p := range members {
		u.Processes++
		u.Threads += p.threads
		u.RSS += p.pages * int64(os.Getpagesize())
		u.Descriptors += countDescriptors(id.pid)
	}
	if limit == 0 || u.RSS+shared <= limit {
		return u
	}
	held := segmentsOf(known)
	resident := u.RSS
	if u.RSS += held.size(); u.RSS > limit && (u.Processes > 1 || u.RSS > resident) {
		u.RSS = exact(known, held)
	}
	return u
}

// update makes the living members the known ones, with those that the table lacked and
// that have not ended, and returns them.
func (f *family) update(living map[procID]process) (known map[procID]bool) {
	f.remember(living)
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.known, func(id procID, _ bool) bool {
		_, there := living[id]
		return !there && hasEnded(id)
	})
	return maps.Clone(f.known)
}

// hasEnded reports whether it is certain that a process has ended.
func hasEnded(id procID) bool {
	if errors.Is(unix.Kill(id.pid, 0), unix.ESRCH) { // it takes no descriptor
		return true
	}
	p, ok := readProcess(id.pid)
	return ok && (p.id != id || p.zombie)
}

// exact sums up the memory of members once more, what they share and what they hold
// in segments counted once. The system takes its time for that.
func exact(members map[procID]bool, held segments) int64 {
	sum := held.size()
	for id := range members {
		sum += unsegmentedSize(id.pid, held)
	}
	return sum
}

// proportionalSize returns the memory of a process, what it shares with others
// in equal parts; all of it where the system does not tell.
func proportionalSize(pid int) int64 {
	if data, err := readProc(pid, "smaps_rollup"); err == nil {
		if n, ok := parsePSS(data); ok {
			return n
		}
	}
	p, _ := readProcess(pid)
	return p.pages * int64(os.Getpagesize())
}

// parsePSS reads the line "Pss: 12 kB" of /proc/PID/smaps_rollup.
func parsePSS(data []byte) (size int64, ok bool) {
	for line := range bytes.Lines(data) {
		rest, found := bytes.CutPrefix(line, []byte("Pss:"))
		if fields := bytes.Fields(rest); found && len(fields) == 2 {
			n, err := strconv.ParseInt(string(fields[0]), 10, 64)
			return n * 1024, err == nil
		}
	}
	return 0, false
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
