package proc

import (
	"fmt"
	"sync/atomic"
	"syscall"
)

// memory is what is known of the memory of a child and its descendants.
type memory struct {
	// limit is what they may hold together; 0 is no limit.
	limit int64
	// held is what they were last measured to hold.
	held atomic.Int64
	// killed is what they held when they were killed for it.
	killed atomic.Int64
	// host is the most that the host itself had held when the child began, and
	// system how many processes the system had killed for memory.
	host   int64
	system int
}

// limitOf returns the limit of memory of a spec.
func limitOf(s Spec) int64 {
	const most = 1 << 62
	if l := s.Sandbox.Policy.Limits.Memory; l < most {
		return int64(l)
	}
	return 0
}

// begin notes how things are before the child can have done anything.
func (m *memory) begin() { m.system = oomKills() }

// begun notes what the child's own figures must be told from: the system
// counts what a process held before it became another program, and that was
// the host's.
func (m *memory) begun() { m.host = ownPeak() }

// EnforceMemory kills the process and its group if they were last measured to
// hold more than their limit of memory, unless the system itself keeps them
// below it, and reports whether it did. Their end is then one for memory.
func (p *Process) EnforceMemory() bool {
	m := &p.child.memory
	held := m.held.Load()
	if m.limit == 0 || held <= m.limit || p.cage.boundsMemory() {
		return false
	}
	m.killed.Store(held)
	p.child.noteFamily()
	p.child.condemn()
	return true
}

// judge says whether a child that has ended did so for memory, and what it
// held. Asked and abnormal ends, and what the system says of the child's
// control group, come with the exit; peak is the most that the child itself
// held, as the system counts.
//
//   - It was killed here because it held too much.
//   - The system says that it has killed it for memory.
//   - It ended badly, and had held more than its limit: it was refused memory,
//     or would have been killed a moment later.
//   - Somebody killed it when it was close to its limit.
//   - Somebody killed it while the system was killing processes for memory.
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

// memoryWords describes an end for memory.
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

// mebibytes formats a size.
func mebibytes(n int64) string {
	const mebi = 1 << 20
	if n%mebi == 0 {
		return fmt.Sprintf("%d MiB", n/mebi)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/mebi)
}
