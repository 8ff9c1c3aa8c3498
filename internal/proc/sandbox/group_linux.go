package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Group is a version 2 control group for one program: what [Group.Add] puts into it stays in it, with all that
// it starts. Its methods are safe for concurrent use until Remove.
type Group struct {
	path   string
	limits Limits
}

// NewGroup makes a group below base, which [FindGroupBase] returned with these limits. An existing name is an error.
func NewGroup(base, name string, l Limits) (*Group, error) {
	if err := enable(base, controllers(l)); err != nil {
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

func configure(path string, l Limits) error {
	if l.Memory != NoLimit {
		if err := write(path, "memory.max", strconv.FormatUint(l.Memory, 10)); err != nil {
			return err
		}
		// A kernel may lack these. Without them memory is swapped out, and one process is killed for what all hold.
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

// Add moves a process into the group, which must not have run yet: what it has started would stay outside.
func (g *Group) Add(pid int) error {
	err := write(g.path, "cgroup.procs", strconv.Itoa(pid))
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Kill kills all members. It does not wait.
func (g *Group) Kill() error { return KillGroup(g.path) }

// KillGroup is Kill for the directory of another host's group.
func KillGroup(path string) error {
	err := write(path, "cgroup.kill", "1")
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Before Linux 5.14: one by one. Forks meanwhile are found the next time.
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

// Remove removes the group. The error is EBUSY while something lives in it. It is safe to call twice.
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

// keyed reads a number from lines "key number"; 0 if absent.
func keyed(data []byte, key string) uint64 {
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte(key+" ")); ok {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(rest)), 10, 64)
			return n
		}
	}
	return 0
}

// write writes to a control file without creating it.
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

// FindGroupBase returns the directory below which groups with these limits can be made, and the limits in force: the
// default of Tasks is dropped where no group can bound tasks. The directory is base, or if that is "" this process's
// own group or its parent, whichever was delegated. The error is an [*UnreachableError] for T2.
func FindGroupBase(base string, l Limits) (string, Limits, error) {
	candidates := []string{base}
	if base == "" {
		own, err := ownGroup()
		if err != nil {
			return "", l, &UnreachableError{Tier: T2, Why: err.Error()}
		}
		// A host with a delegated subtree runs in a leaf of it (systemd's DelegateSubgroup=), because groups with
		// processes cannot distribute memory.
		candidates = []string{own, filepath.Dir(own)}
	}
	wanted := []Limits{l}
	if l.Tasks == 0 {
		wanted = append(wanted, l)
		wanted[1].Tasks = NoLimit
	}
	var problems []string
	for _, limits := range wanted {
		for _, dir := range candidates {
			problem := unusableBase(dir, controllers(limits))
			if problem == "" {
				return dir, limits, nil
			}
			problems = append(problems, problem)
		}
	}
	why := "no control group was delegated: " + strings.Join(problems[:len(candidates)], "; ")
	return "", l, &UnreachableError{Tier: T2, Why: why}
}

// controllers lists what a group with these limits needs.
func controllers(l Limits) []string {
	l = l.withDefaults()
	var need []string
	if l.Memory != NoLimit {
		need = append(need, "memory")
	}
	if l.Tasks != NoLimit {
		need = append(need, "pids")
	}
	return need
}

// unusableBase says why groups with these controllers cannot be made in dir, or "".
func unusableBase(dir string, need []string) string {
	on, err := words(dir, "cgroup.subtree_control")
	if err != nil {
		return dir + " is not a control group of the second version"
	}
	for _, path := range []string{dir, filepath.Join(dir, "cgroup.procs")} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return fmt.Sprintf("%s may not be written: %v", path, err)
		}
	}
	missing := without(need, on)
	if len(missing) == 0 {
		return ""
	}
	offered, err := words(dir, "cgroup.controllers")
	if err != nil {
		return err.Error()
	}
	if absent := without(missing, offered); len(absent) > 0 {
		return fmt.Sprintf("%s does not offer %s (bound to groups of the first version, or not delegated)", dir, strings.Join(absent, ", "))
	}
	if err := unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK); err != nil {
		return fmt.Sprintf("%s may not be shared out: %v", dir, err)
	}
	_, err = os.Stat(filepath.Join(dir, "cgroup.type"))
	isRoot := os.IsNotExist(err) // which may hold processes
	if procs, err := words(dir, "cgroup.procs"); err == nil && len(procs) > 0 && !isRoot {
		return dir + " holds processes, and such a group cannot share out " + strings.Join(missing, ", ")
	}
	return ""
}

func enable(dir string, need []string) error {
	on, err := words(dir, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	for _, name := range without(need, on) {
		if err := write(dir, "cgroup.subtree_control", "+"+name); err != nil {
			return err
		}
	}
	return nil
}

func words(dir, name string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	return strings.Fields(string(data)), err
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

func ownGroup() (string, error) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return groupDir(membership, mounts)
}

// groupDir finds the directory of a group: /proc/PID/cgroup names it within the hierarchy, /proc/PID/mountinfo
// says where which part of that is mounted.
func groupDir(membership, mounts []byte) (string, error) {
	var group string
	for line := range bytes.Lines(membership) {
		if rest, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			group = strings.TrimSuffix(string(rest), "\n")
		}
	}
	if !strings.HasPrefix(group, "/") {
		return "", errors.New("this process is in no control group of the second version")
	}
	for line := range bytes.Lines(mounts) {
		root, point, ok := parseMount(string(line))
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(group, strings.TrimSuffix(root, "/")); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(point, rest), nil
		}
	}
	return "", errors.New("control groups of the second version are not mounted")
}

// parseMount reads the mounted part and the mount point of a cgroup2 line of mountinfo.
func parseMount(line string) (root, point string, ok bool) {
	before, after, found := strings.Cut(line, " - ")
	fields, kind := strings.Fields(before), strings.Fields(after)
	if !found || len(fields) < 5 || len(kind) < 1 || kind[0] != "cgroup2" {
		return "", "", false
	}
	return unescape(fields[3]), unescape(fields[4]), true
}

// unescape decodes blanks in the paths of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
