package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

// Environment variables of the hostile-plugin suite.
const (
	// hostileTier makes TestHostile a host of hostile plugins in that tier.
	hostileTier = "GRAPNEL_HOSTILE"
	// hostileOnly names the rows that it runs, separated by commas; empty is all.
	hostileOnly = "GRAPNEL_HOSTILE_ROWS"
	// hostileAlone runs each row alone, and asserts the p99 of its neighbour.
	hostileAlone = "GRAPNEL_HOSTILE_ALONE"
)

const nobody = 65534

// TestHostile runs every behaviour of badplugin.Hostile in each tier, as the user of
// the test and as another one. Each tier and user has a host in a process of its
// own, this test again: a host that dies is a row that failed.
func TestHostile(t *testing.T) {
	if tier := os.Getenv(hostileTier); tier != "" {
		hostOfHostile(t, tier)
		return
	}
	if testing.Short() || underRaceDetector() {
		t.Skip("the hostile-plugin suite takes a minute, and ten under the race detector: it runs without -short and -race")
	}
	users := []uint32{uint32(os.Geteuid())}
	switch {
	case os.Getenv(longTests) == "":
		t.Log("one row of each family, as one user: GRAPNEL_LONG=1 runs all")
	case users[0] == 0:
		users = append(users, nobody)
	default:
		t.Logf("as user %d only: another one takes root", users[0])
	}
	program := openProgram(t)
	var hosts sync.WaitGroup
	defer hosts.Wait()
	// Hosts mostly wait. Yet with more of them at once, an engine's time for ending its plugins would be too short.
	turns := make(chan struct{}, 3)
	if os.Getenv(hostileAlone) != "" {
		turns = make(chan struct{}, 1) // time is measured
	}
	for i, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1, sandbox.T2} {
		for _, user := range users {
			if user == nobody { // hosts of one user would share its limit of processes
				user -= uint32(i)
			}
			hosts.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				t.Run(fmt.Sprintf("%s_user%d", tier, user), func(t *testing.T) { runHosts(t, program, tier, user) })
			})
		}
	}
}

// underRaceDetector reports whether this is a binary of go test -race.
func underRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// hostileNamesFor are the rows to run as a user: without GRAPNEL_LONG=1 one of each
// family; as another user than the test's only those in which the user matters.
func hostileNamesFor(user uint32) []string {
	family := ""
	return slices.DeleteFunc(hostileNames(), func(name string) bool {
		last := family
		family, _, _ = strings.Cut(name, "-")
		if os.Getenv(longTests) == "" {
			return family == last
		}
		return int(user) != os.Geteuid() && hostileRowOf(name).says
	})
}

// openProgram copies the test binary to where every user may execute it.
func openProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t, "grapnel-hostile")
	path := filepath.Join(dir, "host")
	copied, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err == nil {
		_, err = io.Copy(copied, self)
	}
	if err := errors.Join(err, copied.Close(), self.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// openDir is a temporary directory that every user may read.
func openDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", name) //nolint:usetesting // readable for others
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// runHosts runs hosts until each row has been run. When a host dies, the rows that it
// was running are run again, each in a host of its own, which shows whose fault it
// was.
func runHosts(t *testing.T, program string, tier sandbox.Tier, user uint32) {
	t.Helper()
	queue := [][]string{hostileNamesFor(user)}
	if only := os.Getenv(hostileOnly); only != "" {
		queue = [][]string{strings.Split(only, ",")}
	}
	for len(queue) > 0 {
		rows := queue[0]
		queue = queue[1:]
		output, failed := runHostileHost(t, program, tier, user, rows)
		if reason, skipped := strings.CutPrefix(lineWith(output, "SKIPPED "), "SKIPPED "); skipped {
			t.Skip(reason)
		}
		done, running := progress(output)
		rest := slices.DeleteFunc(slices.Clone(rows), func(row string) bool {
			return slices.Contains(done, row) || slices.Contains(running, row)
		})
		switch {
		case len(done) == len(rows):
			t.Log(summary(output))
			if failed {
				t.Errorf("failed:\n%s", output)
			}
			continue
		case len(running) == 1:
			t.Errorf("%s: the host died:\n%s", running[0], lastWords(output))
		case len(running) == 0:
			t.Fatalf("the host did not come to its rows:\n%s", lastWords(output))
		default:
			t.Logf("the host died of one of %q:\n%s", running, lastWords(output))
			for _, row := range running {
				queue = append(queue, []string{row})
			}
		}
		if len(rest) > 0 {
			queue = append(queue, rest)
		}
	}
}

// runHostileHost runs one host to its end.
func runHostileHost(t *testing.T, program string, tier sandbox.Tier, user uint32, rows []string) (output string, failed bool) {
	t.Helper()
	limit := 4 * time.Minute // below that of go test
	if os.Getenv(hostileAlone) != "" {
		limit = 20 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run=^TestHostile$", "-test.v", "-test.timeout="+limit.String())
	cmd.Dir = filepath.Dir(program)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/", hostileTier + "=" + tier.String(), hostileOnly + "=" + strings.Join(rows, ","),
		hostileAlone + "=" + os.Getenv(hostileAlone), "GOTRACEBACK=single", "GORACE=atexit_sleep_ms=0",
	}
	if user != uint32(os.Geteuid()) { // the one over the lane, the other without
		cmd.Env = append(cmd.Env, overGRPC+"=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user, NoSetGroups: false}
		if group := delegate(t, tier, user); group != nil {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
		}
	}
	data, err := cmd.CombinedOutput()
	if err != nil {
		data = fmt.Appendf(data, "\nthe host: %v\n", err)
	}
	return string(data), err != nil
}

// delegate makes a control group of the user's own, as systemd's Delegate=yes does,
// with a leaf for the host, for T2; nil where there are none.
func delegate(t *testing.T, tier sandbox.Tier, user uint32) *os.File {
	t.Helper()
	if tier < sandbox.T2 {
		return nil
	}
	base, _, err := sandbox.FindGroupBase("", sandbox.Limits{})
	if err != nil {
		return nil // the host says why
	}
	group, err := os.MkdirTemp(base, "hostile-") //nolint:usetesting // a control group
	if err != nil {
		t.Fatal(err)
	}
	leaf := filepath.Join(group, "host")
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{group, leaf} {
		for _, name := range []string{".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
			if err := os.Chown(filepath.Join(dir, name), int(user), int(user)); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir, err := os.Open(leaf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroups(t, dir) })
	return dir
}

// removeGroups removes what delegate made. A group of a plugin that a host has left is
// an error.
func removeGroups(t *testing.T, leaf *os.File) {
	t.Helper()
	defer func() { _ = leaf.Close() }()
	group := filepath.Dir(leaf.Name())
	var left []string
	err := filepath.WalkDir(group, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			left = append(left, path)
		}
		return err
	})
	if err != nil || len(left) != 2 {
		t.Errorf("control groups left: %q, %v", left, err)
	}
	err = os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0)
	for _, path := range slices.Backward(left) {
		err = errors.Join(err, retryBusy(func() error { return os.Remove(path) }))
	}
	if err != nil {
		t.Error(err)
	}
}

// retryBusy waits for processes that have been killed and are still there.
func retryBusy(do func() error) (err error) {
	for range 500 {
		if err = do(); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
	return err
}

// progress reads which rows a host has done, and which it was at.
func progress(output string) (done, running []string) {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if rows, ok := strings.CutPrefix(line, "RUNNING "); ok {
			running = strings.Split(rows, ",")
		}
		if rows, ok := strings.CutPrefix(line, "DONE "); ok {
			done, running = append(done, strings.Split(rows, ",")...), nil
		}
	}
	return done, running
}

// lineWith is the first line that begins with a word; "" if there is none.
func lineWith(output, prefix string) string {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// summary are the lines of a host that are worth reading if it is well.
func summary(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if strings.Contains(line, "p99") || strings.Contains(line, "skipped") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// lastWords are the end of an output, from where a process says why it died.
func lastWords(output string) string {
	for _, word := range []string{"\npanic: ", "\nfatal error: ", "\nruntime: "} {
		if i := strings.Index(output, word); i >= 0 {
			return output[i:min(len(output), i+4000)]
		}
	}
	return output[max(0, len(output)-4000):]
}
