package sandbox

import (
	"fmt"
)

// Tier is how strongly a process is confined. Each tier includes the ones before.
type Tier uint8

// The tiers; see the package comment.
const (
	T0 Tier = iota
	T1
	T2
)

// String returns the tier as operators write it.
func (t Tier) String() string {
	if t > T2 {
		return fmt.Sprintf("undefined tier %d", uint8(t))
	}
	return "T" + string('0'+rune(t))
}

// ParseTier is the inverse of String; "" is T0.
func ParseTier(s string) (Tier, error) {
	for t := T0; t <= T2; t++ {
		if s == t.String() {
			return t, nil
		}
	}
	if s == "" {
		return T0, nil
	}
	return T0, fmt.Errorf("sandbox tier %q is not one of T0, T1, T2", s)
}

// UnreachableError says that this system cannot give a tier, and why.
type UnreachableError struct {
	Tier Tier
	Why  string
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the sandbox tier %s is not reachable here: %s", e.Tier, e.Why)
}

// Versions of Landlock, by what they brought.
const (
	abiRefer    = 2 // Linux 5.19: moving files between directories
	abiTruncate = 3 // Linux 6.2: cutting files
	abiNet      = 4 // Linux 6.7: TCP
	abiIoctl    = 5 // Linux 6.10: commands to devices
	abiScope    = 6 // Linux 6.12: signals and abstract sockets
	abiLog      = 7 // Linux 6.15: flags for what is logged
	abiUnix     = 9 // Linux 7.1: unix sockets with a path
)

// Support is what the running system offers.
type Support struct {
	Landlock   int // the version of its interface, or 0; NoLandlock says why 0
	NoLandlock string
	// Signals says that signals can be confined without harm: the first kernels that do so also keep them from
	// the host's own threads.
	Signals bool
	Filter  bool // Filter says that system calls can be filtered
}

// Check says whether the system can enforce a policy: nil, or an [*UnreachableError]. T1 promises truncation and TCP.
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

// Missing lists what newer kernels would add to a reached tier.
func (s Support) Missing(p Policy) []string {
	var list []string
	add := func(missing bool, text string) {
		if missing {
			list = append(list, text)
		}
	}
	add(s.Landlock < abiIoctl && !p.writesAll(), "commands to devices in granted directories are not refused (Landlock 5, Linux 6.10)")
	add(s.Landlock < abiScope, "abstract unix sockets of other programs are not refused (Landlock 6, Linux 6.12)")
	add(!s.Signals, "signals to the user's other processes are not refused, and it outlives a host that is killed (Landlock 6 with its second correction, Linux 6.12)")
	add(s.Landlock < abiUnix && !p.writesAll() && (!s.Filter || !p.Net.none()),
		"unix sockets of other programs are not refused: without Landlock 9 (Linux 7.1) only a program without network is kept from them")
	add(!s.Filter, "sockets other than TCP, limits and priorities of the user's other processes, keys and io_uring are not refused (no filter of system calls for this machine)")
	return list
}

// MissingGrouped lists what a control group with the limits got, from [FindGroupBase], lacks of those asked for.
func MissingGrouped(asked, got Limits) []string {
	if asked.Tasks == got.Tasks {
		return nil
	}
	return []string{"processes and threads are bounded with all of the user's, and root's not at all (the control group has no pids controller)"}
}

// Reach says whether the system can give a tier for a policy: nil, or an [*UnreachableError].
func (s Support) Reach(t Tier, p Policy, base string) error {
	if t == T0 {
		return nil
	}
	err := s.Check(p)
	if err == nil && t >= T2 {
		_, _, err = FindGroupBase(base, p.Limits)
	}
	return err
}
