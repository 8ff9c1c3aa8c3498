package proc

// Usage is what a plugin's process and its descendants use together.
type Usage struct {
	// RSS is their resident memory in bytes and, if they have a limit that this
	// could exceed, their page tables and what they hold of shared memory, memfds,
	// files of a tmpfs that are open, and System V segments without it being resident
	// in them. What several of them share is counted for each, unless that is more
	// than their limit: then it is looked at closely, and counted once.
	RSS int64
	// Processes and Threads count them.
	Processes, Threads int
}

// CanMeasure reports whether this system tells what a process uses.
func CanMeasure() bool {
	_, ok := measure(nil, nil)
	return ok
}

// Measure returns what each process uses, in the order of the list, and
// whether this system tells. It reads the table of all processes once, however
// long the list, which takes about a millisecond: call it every second or so,
// from one goroutine. Close looks take at most 100 ms of one process, and little
// more than 200 ms of all: who is not reached comes first the next time. A process that has ended uses nothing. Descendants that it
// has seen once are remembered while they live, also for the end of the process,
// when nothing else may lead to them any more. See [Process.EnforceMemory] for
// what may follow.
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
