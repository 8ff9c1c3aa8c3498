package sandbox

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Confinement is a policy made ready for one program. It is used once.
type Confinement struct {
	rules  *ruleset
	filter []unix.SockFilter // nil: this system has none
	limits Limits
	system Support
	// userTasks is the limit of all tasks of the user.
	userTasks uint64
	missing   []string
}

// Probe says what this system offers. It costs a few system calls.
func Probe() Support {
	s := Support{Filter: canFilter()}
	var errata uint64
	s.Landlock, errata, s.NoLandlock = landlock()
	s.Signals = s.Landlock >= abiScope && errata&(1<<(signalErratum-1)) != 0
	return s
}

// Prepare makes a policy ready for a program. It may be called on any thread.
// What it returns must be closed. A policy that this system cannot enforce is
// an [*UnreachableError].
func Prepare(p Policy, prog Program) (*Confinement, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	s := Probe()
	if err := s.Check(p); err != nil {
		return nil, err
	}
	// The os package tries out once how processes can be waited for, and would
	// otherwise do it on a thread that may no longer signal the others.
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
	c := &Confinement{rules: rules, limits: limits, system: s, userTasks: tasks, missing: s.Missing(p)}
	if s.Filter {
		c.filter = filterFor(s, p)
	}
	if err := errors.Join(c.grant(p, prog), rules.ports(p.Net)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// grant adds the rules for files: those of the policy, and what the program
// needs.
func (c *Confinement) grant(p Policy, prog Program) error {
	kinds, loaders := prog.kinds(p.Net)
	for _, need := range Needs() {
		if !kinds[need.Kind] {
			continue
		}
		for _, path := range need.Paths {
			if err := c.rules.path(path, need.Access, false); err != nil {
				return err
			}
		}
	}
	for _, path := range loaders {
		if err := c.rules.path(path, AccessRead, false); err != nil {
			return err
		}
	}
	for _, f := range prog.Files {
		if err := c.rules.handle(int(f.Fd()), f.Name(), AccessRead); err != nil {
			return err
		}
	}
	for _, path := range p.Read {
		if err := c.rules.path(path, AccessRead, true); err != nil {
			return err
		}
	}
	for _, path := range slices.Concat([]string{prog.Folder}, p.Write) {
		access := AccessWrite
		if path == "/" {
			access = AccessAll
		}
		if err := c.rules.path(path, access, true); err != nil {
			return err
		}
	}
	return nil
}

// Apply restricts the calling thread and all that it starts, for good. The
// caller has locked the thread and never gives it back; the process's first
// thread is refused. After an error the thread may be restricted in part:
// nothing must be started from it.
func (c *Confinement) Apply() error {
	if unix.Gettid() == unix.Getpid() {
		return errors.New("the first thread of a process cannot be restricted: it cannot be given up")
	}
	// First, because the next two are allowed to nobody else. The filter is
	// last: it need not let the others pass.
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

// DeathSignal reports whether the program may have a signal for the death of the
// thread that starts it; see Leave.
func (c *Confinement) DeathSignal() bool { return c.system.Signals }

// Leave is the last act of a thread that has started the program, which must not
// run yet: a thread in the program's own domain is one that it may trace, and
// through its memory the whole host. The death signal would come when that
// thread ends. It is the ending thread that sends it, so that it must not be
// able to: a second domain within the first keeps its signals from the program,
// which then becomes the child of another thread of the host.
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

// Missing lists protections of the tier that this system's kernel lacks.
func (c *Confinement) Missing() []string { return slices.Clone(c.missing) }

// Absent lists granted paths that could not be reached; they are not granted,
// also if they come to exist later.
func (c *Confinement) Absent() []string { return slices.Clone(c.rules.absent) }

// Close frees the ruleset. It is safe to call twice.
func (c *Confinement) Close() {
	if c.rules.fd >= 0 {
		_ = unix.Close(c.rules.fd)
		c.rules.fd = -1
	}
}
