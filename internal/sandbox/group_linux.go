package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Group is a control group of the second version for one program: what [Group.Add]
// puts into it stays in it, with all that it starts.
// Its methods may be called from any goroutine until Remove.
type Group struct {
	path   string
	limits Limits
}

// NewGroup makes a group below base, which [FindGroupBase] returned with these
// limits. Names are the caller's; one that exists is an error.
func NewGroup(base, name string, l Limits) (*Group, error) {
	need := controllers(l)
	if err := enable(base, need); err != nil {
		return nil, err
	}
	path := filepath.Join(base, name)
	if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // what is in it may be looked at
		return nil, err
	}
	if err := configure(path, l.withDefaults()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &Group{path: path, limits: l.withDefaults()}, nil
}

// configure writes the limits of a group.
func configure(path string, l Limits) error {
	if l.Memory != NoLimit {
		if err := write(path, "memory.max", strconv.FormatUint(l.Memory, 10)); err != nil {
			return err
		}
		// Without these, which a kernel may lack, the rest of the memory is
		// looked for on disk, and one process is killed for what all hold.
		for name, value := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
			if err := write(path, name, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if l.Tasks != NoLimit {
		return write(path, "pids.max", strconv.FormatUint(l.Tasks, 10))
	}
	return nil
}

// Add moves a process into the group. It must not have run yet: what it has started
// stays outside. One that was killed meanwhile is no error.
func (g *Group) Add(pid int) error {
	err := write(g.path, "cgroup.procs", strconv.Itoa(pid))
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// bounds reports whether the group bounds memory, and how many tasks there are. A
// nil group bounds nothing.
func (g *Group) bounds() (memory, tasks bool) {
	return g != nil && g.limits.Memory != NoLimit, g != nil && g.limits.Tasks != NoLimit
}

// Path is the group's folder.
func (g *Group) Path() string { return g.path }

// Kill kills all that is in the group. It does not wait.
func (g *Group) Kill() error { return killGroup(g.path) }

// KillGroup is Kill for the folder of a group that another host has left.
func KillGroup(path string) error { return killGroup(path) }

func killGroup(path string) error {
	err := write(path, "cgroup.kill", "1")
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Before Linux 5.14: one by one; who forks meanwhile is there the next time.
	data, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(data) {
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return nil
}

// Remove removes the group, in which nothing may live any more. While that is
// not yet so the error is EBUSY, and the call may be repeated. It is safe to
// call twice.
func (g *Group) Remove() error {
	if err := os.Remove(g.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// OOMKills returns how many members the system has killed for memory.
func (g *Group) OOMKills() uint64 {
	data, err := os.ReadFile(filepath.Join(g.path, "memory.events"))
	if err != nil {
		return 0 // no limit, no kills
	}
	return keyed(data, "oom_kill")
}

// keyed reads one number of a file of lines "key number"; 0 if it is not there.
func keyed(data []byte, key string) uint64 {
	for line := range bytes.Lines(data) {
		rest, ok := bytes.CutPrefix(line, []byte(key+" "))
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}

// write writes to a control file, which is never made.
func write(path, name, value string) error {
	f, err := os.OpenFile(filepath.Join(path, name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %q: %w", value, err)
	}
	return nil
}
