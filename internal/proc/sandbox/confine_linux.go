package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Confinement is a policy prepared for one program. It is used once.
type Confinement struct {
	Missing []string // protections of the tier that this kernel lacks
	Absent  []string // granted paths that could not be reached; they are not granted, even if they appear later

	rules     *ruleset
	filter    []unix.SockFilter // nil: this system has none
	limits    Limits
	system    Support
	userTasks uint64 // the limit of all tasks of the user
}

// Probe says what this system offers. It costs a few system calls.
func Probe() Support {
	s := Support{Filter: canFilter()}
	var errata uint64
	s.Landlock, errata, s.NoLandlock = landlock()
	s.Signals = s.Landlock >= abiScope && errata&(1<<(signalErratum-1)) != 0
	return s
}

// Prepare prepares a policy for a program, on any thread. The result must be closed. A policy that this system
// cannot enforce is an [*UnreachableError].
func Prepare(p Policy, prog Program) (*Confinement, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	s := Probe()
	if err := s.Check(p); err != nil {
		return nil, err
	}
	// The os package probes once how to wait for processes. It must not do so on a thread that may no longer
	// signal others.
	if _, err := os.FindProcess(os.Getpid()); err != nil {
		return nil, err
	}
	limits := p.Limits.withDefaults()
	tasks, err := addTasks(limits.Tasks)
	if err != nil {
		return nil, err
	}
	rules, err := newRuleset(s, p.Net)
	if err != nil {
		return nil, err
	}
	c := &Confinement{rules: rules, limits: limits, system: s, userTasks: tasks, Missing: s.Missing(p)}
	if s.Filter {
		c.filter = filterFor(s, p)
	}
	if err := errors.Join(c.grant(p, prog), rules.ports(p.Net)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Confinement) grant(p Policy, prog Program) error {
	var errs []error
	allow := func(paths []string, access Access, granted bool) {
		for _, path := range paths {
			a := access
			if path == "/" && a == AccessWrite {
				a = AccessAll
			}
			reached, err := c.rules.path(path, a)
			errs = append(errs, err)
			if granted && !reached {
				c.Absent = append(c.Absent, path)
			}
		}
	}
	kinds, loaders := prog.kinds(p.Net)
	for _, need := range Needs() {
		if kinds[need.Kind] {
			allow(need.Paths, need.Access, false)
		}
	}
	allow(loaders, AccessRead, false)
	for _, f := range prog.Files {
		errs = append(errs, c.rules.handle(int(f.Fd()), f.Name(), AccessRead))
	}
	allow(p.Read, AccessRead, true)
	allow(p.Write, AccessWrite, true)
	allow([]string{prog.Dir}, AccessWrite, true)
	return errors.Join(errs...)
}

// Apply restricts the calling thread, and all that it starts, for good. The thread is locked, never given back,
// and not the process's first. After an error it may be half restricted: start nothing from it.
func (c *Confinement) Apply() error {
	if unix.Gettid() == unix.Getpid() {
		return errors.New("the first thread of a process cannot be restricted: it cannot be given up")
	}
	// no_new_privs is required by the next two. The filter is last: it need not let them pass.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl(PR_SET_NO_NEW_PRIVS)", err)
	}
	if err := c.rules.restrict(0); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if c.filter == nil {
		return nil
	}
	return installFilter(c.filter)
}

// DeathSignal reports whether the program may have a signal for the death of the thread that starts it; see Leave.
func (c *Confinement) DeathSignal() bool { return c.system.Signals }

// Leave is the last act of the thread that started the program, before the program runs: the program could
// trace a thread of its own domain, and so reach the whole host. A thread's end sends the death signal; a
// second domain keeps the signal from the program, which becomes the child of another thread.
func (c *Confinement) Leave() error {
	if !c.system.Signals {
		return nil
	}
	fd, err := create(unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var flags uintptr
	if c.system.Landlock >= abiLog {
		flags = unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF
	}
	return (&ruleset{fd: fd}).restrict(flags)
}

// Close frees the ruleset. It is safe to call twice.
func (c *Confinement) Close() {
	if c.rules.fd >= 0 {
		_ = unix.Close(c.rules.fd)
		c.rules.fd = -1
	}
}

// keptCapabilities let a program of root use files of all users within its grants, as the host that granted them can.
const keptCapabilities = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH

// dropCapabilities drops all others from the calling thread; with no_new_privs nothing regains them.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for i, kept := range [2]uint32{keptCapabilities, 0} {
		sets[i].Permitted &= kept
		sets[i].Effective &= kept
		sets[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	return nil
}

// Limit sets the resource limits of a started process that does not run yet, except those that its control
// group bounds better. The restricted thread's own filter would refuse it.
func (c *Confinement) Limit(pid int, g *Group) error {
	bounds := map[int]uint64{
		unix.RLIMIT_NOFILE: c.limits.Files, unix.RLIMIT_FSIZE: c.limits.FileSize,
		unix.RLIMIT_DATA: c.limits.Data, unix.RLIMIT_NPROC: c.userTasks,
	}
	if g != nil && g.limits.Memory != NoLimit {
		delete(bounds, unix.RLIMIT_DATA)
	}
	if g != nil && g.limits.Tasks != NoLimit {
		delete(bounds, unix.RLIMIT_NPROC)
	}
	for resource, value := range bounds {
		if value == NoLimit {
			continue
		}
		if err := lower(pid, resource, value); err != nil {
			return err
		}
	}
	return nil
}

// lower sets a limit unless a lower one is in force. The process may have ended.
func lower(pid, resource int, value uint64) error {
	var now unix.Rlimit
	err := unix.Prlimit(pid, resource, nil, &now)
	if err == nil {
		value = min(value, now.Max)
		err = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("prlimit", err)
	}
	return nil
}

// addTasks returns a limit of the user's tasks that allows for more of them. It counts from the whole system's
// number, because the user's would take a look at every process.
func addTasks(more uint64) (uint64, error) {
	if more == NoLimit {
		return NoLimit, nil
	}
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	all, ok := parseTasks(data)
	if !ok {
		return 0, fmt.Errorf("no number of tasks in /proc/loadavg: %q", data)
	}
	return all + min(more, NoLimit-all), nil
}

func parseTasks(loadavg []byte) (uint64, bool) {
	var load [3]float64
	var running, total uint32
	_, err := fmt.Sscanf(string(loadavg), "%g %g %g %d/%d", &load[0], &load[1], &load[2], &running, &total)
	return uint64(total), err == nil
}
