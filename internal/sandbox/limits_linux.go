package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Limit sets the resource limits of a process that has been started and does not
// run yet. It is not called on the restricted thread, whose own filter refuses
// it. What its control group bounds, if it has one, the limits of the process
// would bound worse, and do not.
func (c *Confinement) Limit(pid int, g *Group) error {
	type bound struct {
		resource int
		value    uint64
	}
	bounds := []bound{{unix.RLIMIT_NOFILE, c.limits.Files}, {unix.RLIMIT_FSIZE, c.limits.FileSize}}
	memory, tasks := g.bounds()
	if !memory {
		bounds = append(bounds, bound{unix.RLIMIT_DATA, c.limits.Data})
	}
	if !tasks {
		bounds = append(bounds, bound{unix.RLIMIT_NPROC, c.userTasks})
	}
	for _, b := range bounds {
		if b.value == NoLimit {
			continue
		}
		if err := lower(pid, b.resource, b.value); err != nil {
			return err
		}
	}
	return nil
}

// lower sets a limit unless the one in force is lower. A process that has
// ended meanwhile needs none.
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

// addTasks returns the limit of the user's tasks that leaves room for more of
// them. How many the user has would take a look at every process; the whole
// system's number is one line, and not less.
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

// parseTasks reads the number of tasks in /proc/loadavg: "0.1 0.2 0.3 1/234 567".
func parseTasks(loadavg []byte) (uint64, bool) {
	fields := bytes.Fields(loadavg)
	if len(fields) < 4 {
		return 0, false
	}
	_, total, ok := bytes.Cut(fields[3], []byte{'/'})
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(total), 10, 32)
	return n, err == nil
}
