package proc

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
)

// memory is what is known of the memory of a child and its descendants.
type memory struct {
	limit  int64        // for all together; 0 is unlimited
	held   atomic.Int64 // the last measurement
	killed atomic.Int64 // what they held when they were killed for it
	host   int64        // the host's own peak, and system the system's count of memory kills, when the child began
	system int
}

// Held returns the memory last measured, 0 before.
func (p *Process) Held() int64 { return p.child.memory.held.Load() }

// EnforceMemory kills the process if it was last measured above its limit and no control group keeps that.
func (p *Process) EnforceMemory() bool {
	m := &p.child.memory
	held := m.held.Load()
	if m.limit == 0 || held <= m.limit || p.cage.group != nil {
		return false
	}
	m.killed.Store(held)
	p.child.noteFamily()
	p.child.condemn()
	return true
}

// judge says whether an ended child died for memory, and what it held. grouped is whether its control group saw
// a memory kill; peak is the child's own, as the system counts. It did if
//
//   - it was killed here because it held too much
//   - the system says that it has killed it for memory
//   - it ended badly above its limit: it was refused memory, or would have been killed a moment later
//   - somebody killed it close to its limit, or while the system was killing for memory
func (m *memory) judge(e Exit, grouped bool, peak int64) (oom bool, held int64) {
	if killed := m.killed.Load(); killed > 0 && e.Signal == syscall.SIGKILL {
		return true, killed
	}
	if peak <= m.host {
		peak = 0 // the host's own
	}
	held = max(m.held.Load(), peak)
	killed := e.Signal == syscall.SIGKILL
	switch {
	case e.Asked || e.Code == 0:
		return false, 0
	case killed && grouped, m.limit > 0 && held >= m.limit:
		return true, held
	case killed && m.limit > 0 && held >= m.limit-m.limit/8:
		return true, held
	case killed && oomKills() > m.system:
		return true, held
	}
	return false, 0
}

func (e Exit) memoryWords() string {
	words := "killed, probably for memory"
	switch {
	case e.Limit > 0 && e.Held > e.Limit:
		words = "ended for memory: it held " + mebibytes(e.Held)
	case e.Held > 0:
		words += ": it held " + mebibytes(e.Held)
	}
	if e.Limit > 0 {
		words += " (its limit is " + mebibytes(e.Limit) + ")"
	}
	return words
}

func mebibytes(n int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MiB"
}

// Usage is what a plugin's process and its descendants use together.
type Usage struct {
	// RSS is their resident memory in bytes and, if they have a limit that this could exceed, their page tables
	// and non-resident shared memory, memfds, open tmpfs files and System V segments. Shared memory counts for
	// each holder, unless that exceeds the limit: then it is counted exactly, once.
	RSS                int64
	Processes, Threads int
}

// CanMeasure reports whether this system says what a process uses.
func CanMeasure() bool {
	_, ok := measure(nil, nil)
	return ok
}

// Measure returns what each process uses, in the order of the list, and whether this system can say. It reads
// the process table once (about 1 ms) whatever the list: call it every second or so, from one goroutine. Close
// looks take at most 100 ms for one process and 200 ms for all; those not reached come first next time.
// Descendants are remembered for the end of the process, when nothing else may lead to them.
func Measure(list []*Process) ([]Usage, bool) {
	families, limits := make([]*family, len(list)), make([]int64, len(list))
	for i, p := range list {
		families[i], limits[i] = p.child.descendants(), p.child.memory.limit
	}
	usages, ok := measure(families, limits)
	for i, p := range list {
		if u := usages[i]; u.Processes > 0 { // what it held last explains its end
			p.child.memory.held.Store(u.RSS)
		}
	}
	return usages, ok
}
