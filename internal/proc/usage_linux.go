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

// Bounds on the cost of measure beyond the table of processes.
const (
	// nearTime bounds the close look at one family: half for what is not resident, half for what is shared.
	nearTime  = 100 * time.Millisecond
	nearTotal = 2 * nearTime // when no further close look begins
)

type nearLook struct {
	at   time.Time
	held int64
}

type table struct {
	processes []process
	tagged    map[tag]map[procID]bool
	shared    int64
}

// measure is Measure for families with their memory limits (0 is unlimited). A nil family has not begun.
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

// newTable sorts processes by tag. Marks are not read: that may take megabytes for each process.
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

// usage sums up the living members of a family, and remembers only them, since a plugin may start a program for
// each call. Known members that the table lacks are kept until it is certain that they have ended: nothing else
// may lead to them.
func (f *family) usage(t *table) (Usage, map[procID]process) {
	roots := f.members()
	maps.Copy(roots, t.tagged[f.tag])
	f.reapOrphans(t.processes, roots)
	members := f.closure(t.processes, roots)
	maps.DeleteFunc(members, func(_ procID, p process) bool { return p.zombie })
	f.update(members)
	u := Usage{Processes: len(members)}
	for _, p := range members {
		u.RSS += p.pages * int64(os.Getpagesize()) // what they share is counted for each
		u.Threads += p.threads
	}
	return u, members
}

// surely reports whether no close look is needed: one process alone is above the limit, or all are below it
// even with all shared memory of the machine and a page table for each address.
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

// pageTables returns the most that the page tables for size bytes take: 8 bytes for each page and a little more.
func pageTables(size int64) int64 {
	const entry, levels = 8, 1 << 16
	return size/int64(os.Getpagesize())*entry*9/8 + levels
}

type doubt struct {
	family  *family
	members map[procID]process
	usage   *Usage
	limit   int64
}

// settle looks closely at families until nearTotal, those first that have waited longest. The others hold what
// they held at their last look, or no more than their limit before the first.
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

// closely adds page tables and non-resident memory. Only a sum above the limit is counted exactly.
func (f *family) closely(members map[procID]process, resident, limit int64) int64 {
	end := time.Now().Add(nearTime / 2)
	var tables int64
	for id := range members {
		data, _ := readProc(id.pid, "status")
		size, _ := parseSize(data, "VmPTE:")
		tables += size
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

// exact counts shared memory and segments once. If that takes too long it samples, large processes first.
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

// proportionalSize returns the memory of a process with shared memory divided where the system says it.
func proportionalSize(pid int) int64 {
	if data, err := readProc(pid, "smaps_rollup"); err == nil {
		if n, ok := parsePSS(data); ok {
			return n
		}
	}
	p, _ := readProcess(pid)
	return p.pages * int64(os.Getpagesize())
}

func parsePSS(data []byte) (size int64, ok bool) { return parseSize(data, "Pss:") }

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
