package proc

// Usage is what a plugin's process and its descendants use together.
type Usage struct {
	// RSS is their resident memory in bytes. What several of them share is
	// counted for each.
	RSS int64
	// Processes and Threads count them.
	Processes, Threads int
	// Descriptors is how many they have open.
	Descriptors int
}

// Measure returns what each process uses, in the order of the list, and
// whether this system tells. It reads the table of all processes once, however
// long the list, which takes about a millisecond: call it every second or so,
// from one goroutine. A process that has ended uses nothing. Descendants that it
// has seen once are remembered, also for the end of the process, when nothing
// else may lead to them any more.
func Measure(list []*Process) ([]Usage, bool) {
	families := make([]*family, len(list))
	for i, p := range list {
		families[i] = p.child.descendants()
	}
	return measure(families)
}
