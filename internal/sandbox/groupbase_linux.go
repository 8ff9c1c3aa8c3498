package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// FindGroupBase returns the folder below which groups with these limits can be
// made, and the limits that they then have: those that were asked for, but that
// the default of Tasks is given up where no group can bound tasks. The folder is
// base if it is not "", otherwise this process's own control group or the one
// above it, whichever was delegated to this user. It changes nothing. The error is an [*UnreachableError] for T2 that says what is missing.
func FindGroupBase(base string, l Limits) (string, Limits, error) {
	dir, err := findGroupBase(base, l)
	if err == nil || l.Tasks != 0 {
		return dir, l, err
	}
	without := l
	without.Tasks = NoLimit
	if dir, err := findGroupBase(base, without); err == nil {
		return dir, without, nil
	}
	return "", l, err
}

func findGroupBase(base string, l Limits) (string, error) {
	candidates := []string{base}
	if base == "" {
		own, err := ownGroup()
		if err != nil {
			return "", &UnreachableError{Tier: T2, Why: err.Error()}
		}
		// Who was given a subtree stands in a leaf of it (systemd's
		// DelegateSubgroup=): groups with processes of their own cannot share
		// out memory.
		candidates = []string{own, filepath.Dir(own)}
	}
	var problems []string
	for _, dir := range candidates {
		problem := unfitBase(dir, controllers(l))
		if problem == "" {
			return dir, nil
		}
		problems = append(problems, problem)
	}
	return "", &UnreachableError{Tier: T2, Why: "no control group was delegated: " + strings.Join(problems, "; ")}
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

// unfitBase says why groups that need controllers cannot be made in a folder,
// or "".
func unfitBase(dir string, need []string) string {
	on, err := words(dir, "cgroup.subtree_control")
	if err != nil {
		return dir + " is no control group of the second version"
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
	if procs, err := words(dir, "cgroup.procs"); err == nil && len(procs) > 0 && !isRoot(dir) {
		return dir + " holds processes, and such a group cannot share out " + strings.Join(missing, ", ")
	}
	return ""
}

// isRoot reports whether a group is the root of its hierarchy, to which the
// rule about processes does not apply.
func isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
	return os.IsNotExist(err)
}

// enable shares out controllers to the groups below a folder.
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

// words reads a control file of words.
func words(dir, name string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	return strings.Fields(string(data)), err
}

// without returns the elements of list that are not in other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// ownGroup returns the folder of this process's control group.
func ownGroup() (string, error) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return groupFolder(membership, mounts)
}

// groupFolder finds the folder of a control group: the line of the second
// version in /proc/PID/cgroup names it within the hierarchy, and a line of
// /proc/PID/mountinfo says which part of that is where.
func groupFolder(membership, mounts []byte) (string, error) {
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

// parseMount reads a line of mountinfo: the mounted part and the mount point,
// if it is a hierarchy of the second version.
func parseMount(line string) (root, point string, ok bool) {
	before, after, found := strings.Cut(line, " - ")
	fields, kind := strings.Fields(before), strings.Fields(after)
	if !found || len(fields) < 5 || len(kind) < 1 || kind[0] != "cgroup2" {
		return "", "", false
	}
	return unescape(fields[3]), unescape(fields[4]), true
}

// unescape undoes the kernel's escaping of blanks in paths.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
