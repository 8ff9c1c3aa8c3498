package sandbox

import "fmt"

// Versions of Landlock, by what they brought.
const (
	abiTruncate = 3 // Linux 6.2: cutting files
	abiNet      = 4 // Linux 6.7: TCP
	abiIoctl    = 5 // Linux 6.10: commands to devices
	abiScope    = 6 // Linux 6.12: signals and abstract sockets
	abiLog      = 7 // Linux 6.15: flags for what is logged
	abiUnix     = 9 // Linux 7.1: unix sockets with a path
)

// Support is what the running system offers for a confinement.
type Support struct {
	// Landlock is the version of its interface, or 0.
	Landlock int
	// NoLandlock says why that is 0.
	NoLandlock string
	// Signals says that signals can be kept inside without harm: kernels that
	// brought that keep them from threads of the host itself, until corrected.
	Signals bool
	// Filter says that system calls can be filtered.
	Filter bool
}

// Check says whether the system can enforce a policy: nil, or an
// [*UnreachableError]. Cutting and TCP are what T1 promises.
func (s Support) Check(p Policy) error {
	needed, what := abiTruncate, "keeping files from being cut"
	if !p.Net.All {
		needed, what = abiNet, "keeping programs from the network"
	}
	switch {
	case s.Landlock == 0:
		return &UnreachableError{Tier: T1, Why: s.NoLandlock}
	case s.Landlock < needed:
		linux := map[int]string{abiTruncate: "6.2", abiNet: "6.7"}[needed]
		return &UnreachableError{Tier: T1, Why: fmt.Sprintf("the kernel's Landlock has version %d, and %s needs %d (Linux %s)", s.Landlock, what, needed, linux)}
	}
	return nil
}

// Missing lists what a policy's confinement lacks here, although its tier is
// reached: what newer kernels add to it.
func (s Support) Missing(p Policy) []string {
	var list []string
	add := func(missing bool, text string) {
		if missing {
			list = append(list, text)
		}
	}
	add(s.Landlock < abiIoctl && !p.writesAll(), "commands to devices in granted folders are not refused (Landlock 5, Linux 6.10)")
	add(s.Landlock < abiScope, "abstract unix sockets of other programs are not refused (Landlock 6, Linux 6.12)")
	add(!s.Signals, "signals to the user's other processes are not refused, and it outlives a host that is killed (Landlock 6 with its second correction, Linux 6.12)")
	add(s.Landlock < abiUnix && !p.writesAll() && (!s.Filter || !p.Net.none()),
		"unix sockets of other programs are not refused: without Landlock 9 (Linux 7.1) only a program without network is kept from them")
	add(!s.Filter, "sockets other than TCP, limits and priorities of the user's other processes, keys and io_uring are not refused (no filter of system calls for this machine)")
	return list
}

// MissingGrouped lists what a control group with these limits, as
// [FindGroupBase] returned them, lacks beside what was asked for.
func MissingGrouped(asked, got Limits) []string {
	if asked.Tasks == got.Tasks {
		return nil
	}
	return []string{"processes and threads are bounded with all of the user's, and root's not at all (the control group has no pids controller)"}
}

// Reach returns the highest tier that is reachable here for a policy, and what
// keeps it from the next; "" at the highest. base is as in [FindGroupBase].
func (s Support) Reach(p Policy, base string) (Tier, string) {
	if err := s.Check(p); err != nil {
		return T0, err.Error()
	}
	if _, _, err := FindGroupBase(base, p.Limits); err != nil {
		return T1, err.Error()
	}
	return T2, ""
}
