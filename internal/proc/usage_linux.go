package proc

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds on what one call of measure costs beyond the table of processes.
const (
	// nearTime bounds the close look at one family: half of it for what it holds
	// without it being resident, half for what its processes share.
	nearTime = 100 * time.Millisecond
	// nearTotal is when no further close look begins.
	nearTotal = 2 * nearTime
)

// nearLook is the last close look at a family.
type nearLook struct {
	at   time.Time
	held int64
}

// table is the machine as measure sees it.
type table struct {
	processes []process
	tagged    map[tag]map[procID]bool
	// shared is all shared memory and files in memory, whoever holds them.
	shared int64
}

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
	t := newTable(readProcesses(since))
	list := make([]Usage, len(families))
	var doubtful []doubt
	for i, f := range families {
		if f == nil {
			continue
		}
		var members map[procID]process
		list[i], members = f.usage(t)
		if limits[i] > 0 && !list[i].surely(members, limits[i], t.shared) {
			doubtful = append(doubtful, doubt{f, members, &list[i], limits[i]})
		}
	}
	settle(doubtful)
	return list, true
}

// newTable sorts processes by tag. A mark is not looked for: reading it takes as
// long as a plugin wants, up to megabytes for each process.
func newTable(processes []process) *table {
	t := &table{processes: processes, tagged: map[tag]map[procID]bool{}, shared: sharedMemory()}
	for _, p := range processes {
		if bears := readTag(p.id.pid); bears.Max&tagBit != 0 {
			if t.tagged[bears] == nil {
				t.tagged[bears] = map[procID]bool{}
			}
			t.tagged[bears][p.id] = true
		}
	}
	return t
}

// usage sums up the living members of a family, and remembers them and no
// others: a plugin may start a program for each of its calls. The table may lack
// some, since it is older than what is known, or since this process had no
// descriptor free to read it: they are forgotten when it is certain that they
// have ended. Nothing else may lead to them any more.
func (f *family) usage(t *table) (Usage, map[procID]process) {
	roots := f.members()
	maps.Copy(roots, t.tagged[f.tag])
	f.reapOrphans(t.processes, roots)
	members := f.closure(t.processes, roots)
	maps.DeleteFunc(members, func(_ procID, p process) bool { return p.zombie })
	f.update(members)
	u := Usage{RSS: resident(members), Processes: len(members)}
	for _, p := range members {
		u.Threads += p.threads
	}
	return u, members
}

// resident sums up what processes hold, what they share counted for each.
func resident(members map[procID]process) (sum int64) {
	for _, p := range members {
		sum += p.pages * int64(os.Getpagesize())
	}
	return sum
}

// surely reports whether no close look is needed to compare a family with its limit:
// it is one process that is over it, or all are below it even with all shared memory
// of the machine and a page table for each address.
func (u Usage) surely(members map[procID]process, limit, shared int64) bool {
	if len(members) == 1 && u.RSS > limit {
		return true
	}
	most := u.RSS + shared
	for _, p := range members {
		most += pageTables(p.size)
	}
	return most <= limit
}

// pageTables returns the most that the page tables of so many addresses take: an
// entry of 8 bytes for each page, and little for the levels above.
func pageTables(size int64) int64 {
	const entry, levels = 8, 1 << 16
	return size/int64(os.Getpagesize())*entry*9/8 + levels
}

// doubt is a family that takes a close look.
type doubt struct {
	family  *family
	members map[procID]process
	usage   *Usage
	limit   int64
}

// settle looks closely at families, those first that were not looked at for longest,
// until it has taken its time. The others hold what they held at their last look, and
// before the first one no more than their limit.
func settle(list []doubt) {
	slices.SortFunc(list, func(a, b doubt) int { return a.family.near.at.Compare(b.family.near.at) })
	begin := time.Now()
	for _, d := range list {
		near := &d.family.near
		if time.Since(begin) < nearTotal {
			near.held, near.at = d.family.closely(d.members, d.usage.RSS, d.limit), time.Now()
		} else if near.at.IsZero() {
			near.held = min(d.usage.RSS, d.limit)
		}
		d.usage.RSS = near.held
	}
}

// closely returns what a family holds, with its page tables and with what it holds
// without it being resident. Only if that is more than its limit is everything counted
// exactly once.
func (f *family) closely(members map[procID]process, resident, limit int64) int64 {
	end := time.Now().Add(nearTime / 2)
	var tables int64
	for id := range members {
		tables += pageTablesOf(id.pid)
		if tables > limit || time.Now().After(end) {
			break
		}
	}
	if tables > limit {
		return tables // looking at what is mapped would take as long as there are entries
	}
	held := segmentsOf(members, end)
	sum := resident + tables + held.size()
	if sum > limit && (len(members) > 1 || len(held) > 0) {
		return tables + exact(members, held)
	}
	return sum
}

// pageTablesOf returns what the page tables of a process take.
func pageTablesOf(pid int) int64 {
	data, err := readProc(pid, "status")
	if err != nil {
		return 0
	}
	n, _ := parseSize(data, "VmPTE:")
	return n
}

// update makes the living members the known ones, with those that the table lacked and
// that have not ended.
func (f *family) update(living map[procID]process) {
	f.remember(living)
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.known, func(id procID, _ bool) bool {
		_, there := living[id]
		return !there && hasEnded(id)
	})
}

// hasEnded reports whether it is certain that a process has ended.
func hasEnded(id procID) bool {
	if errors.Is(unix.Kill(id.pid, 0), unix.ESRCH) { // it takes no descriptor
		return true
	}
	p, ok := readProcess(id.pid)
	return ok && (p.id != id || p.zombie)
}

// exact sums up the memory of processes once more, what they share and what they
// hold in segments counted once. The system takes its time for that: of those that
// take too long it takes a sample, in which large ones are likelier, and scales it up.
func exact(members map[procID]process, held segments) int64 {
	type place struct {
		process
		order float64
	}
	var list []place
	for _, p := range members {
		list = append(list, place{p, rand.ExpFloat64() / float64(p.pages+1)})
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.order, b.order) })
	var sum, seen, all int64
	end := time.Now().Add(nearTime / 2)
	for i, p := range list {
		all += p.pages
		if i == 0 || time.Now().Before(end) {
			sum += unsegmentedSize(p.id.pid, held)
			seen += p.pages
		}
	}
	if seen > 0 && seen < all {
		sum = int64(float64(sum) * float64(all) / float64(seen))
	}
	return held.size() + sum
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
func parsePSS(data []byte) (size int64, ok bool) { return parseSize(data, "Pss:") }

// parseSize reads a line like "Pss: 12 kB".
func parseSize(data []byte, name string) (size int64, ok bool) {
	for line := range bytes.Lines(data) {
		rest, found := bytes.CutPrefix(line, []byte(name))
		if fields := bytes.Fields(rest); found && len(fields) == 2 {
			n, err := strconv.ParseInt(string(fields[0]), 10, 64)
			return n * 1024, err == nil
		}
	}
	return 0, false
}
