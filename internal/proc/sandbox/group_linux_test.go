package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fakeGroup makes a directory with control files.
func fakeGroup(t *testing.T, files map[string]string) string {
	t.Helper()

	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConfigure(t *testing.T) {
	t.Parallel()

	all := map[string]string{"memory.max": "max", "memory.swap.max": "max", "memory.oom.group": "0", "pids.max": "max"}
	tests := []struct {
		name   string
		files  map[string]string
		limits Limits
		want   map[string]string
		fails  bool
	}{
		{"memory and tasks", all, Limits{Memory: 1 << 20, Tasks: 7}, map[string]string{
			"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "7",
		}, false},
		{"no bounds", all, Limits{Memory: NoLimit, Tasks: NoLimit}, all, false},
		{"no swap", map[string]string{"memory.max": "max"}, Limits{Memory: 4096, Tasks: NoLimit}, map[string]string{"memory.max": "4096"}, false},
		{"no memory", map[string]string{"pids.max": "max"}, Limits{Memory: 4096, Tasks: 1}, map[string]string{"pids.max": "max"}, true},
		{"no tasks", nil, Limits{Memory: NoLimit, Tasks: 1}, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dir := fakeGroup(t, tt.files)
			if err := configure(dir, tt.limits); (err != nil) != tt.fails {
				t.Errorf("error %v, want one: %v", err, tt.fails)
			}
			got := map[string]string{}
			for name := range tt.files {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				got[name] = string(text)
			}
			if tt.want == nil {
				tt.want = map[string]string{}
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("files (-got +want):\n%s", diff)
			}
		})
	}
}

func TestFindGroupBase(t *testing.T) {
	t.Parallel()

	member := map[string]string{"cgroup.type": "domain\n"}
	with := func(more map[string]string) map[string]string {
		files := map[string]string{"cgroup.procs": "", "cgroup.subtree_control": "", "cgroup.controllers": "cpu memory pids\n"}
		for _, m := range []map[string]string{member, more} {
			maps.Copy(files, m)
		}
		return files
	}
	tests := []struct {
		name   string
		files  map[string]string
		limits Limits
		why    string
		softer bool
	}{
		{"no tasks", with(map[string]string{"cgroup.controllers": "memory"}), Limits{Memory: 1}, "", true},
		{"nothing at all", with(map[string]string{"cgroup.controllers": "", "cgroup.procs": "7\n"}), Limits{}, "", true},
		{"no tasks, which are wanted", with(map[string]string{"cgroup.controllers": "memory"}), Limits{Memory: 1, Tasks: 7}, "does not offer pids", false},
		{"shared out already", with(map[string]string{"cgroup.subtree_control": "memory pids\n"}), Limits{Memory: 1}, "", false},
		{"can be shared out", with(nil), Limits{Memory: 1}, "", false},
		{"nothing is needed", with(map[string]string{"cgroup.controllers": ""}), Limits{Tasks: NoLimit}, "", false},
		{"no memory", with(map[string]string{"cgroup.controllers": "pids"}), Limits{Memory: 1}, "does not offer memory (bound to groups of the first version", false},
		{"nothing offered", with(map[string]string{"cgroup.controllers": ""}), Limits{Memory: 1}, "does not offer memory, pids", false},
		{"processes in it", with(map[string]string{"cgroup.procs": "7\n"}), Limits{Memory: 1}, "holds processes, and such a group cannot share out memory, pids", false},
		{"processes, but shared out", with(map[string]string{"cgroup.procs": "7\n", "cgroup.subtree_control": "pids"}), Limits{}, "", false},
		{"no group", nil, Limits{}, "is not a control group of the second version", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dir := fakeGroup(t, tt.files)
			got, limits, err := FindGroupBase(dir, tt.limits)
			if tt.why == "" {
				if err != nil || got != dir || (limits != tt.limits) != tt.softer {
					t.Errorf("FindGroupBase = %q, %+v, %v", got, limits, err)
				}
				if missing := MissingGrouped(tt.limits, limits); (len(missing) > 0) != tt.softer {
					t.Errorf("missing %q", missing)
				}
				return
			}
			if u, ok := errors.AsType[*UnreachableError](err); !ok || u.Tier != T2 || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("FindGroupBase = %q, %v; want %q", got, err, tt.why)
			}
		})
	}
}

func TestGroupDirectory(t *testing.T) {
	t.Parallel()

	const hybrid = "9:name=systemd:/\n8:pids:/x\n0::/user.slice/a b\n"
	//nolint:dupword // such is mountinfo
	const mounts = `24 1 0:22 / /proc rw - proc proc rw
31 30 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
`
	tests := []struct {
		name, membership, mounts, want, problem string
	}{
		{"hybrid", hybrid, mounts, "/sys/fs/cgroup/unified/user.slice/a b", ""},
		{"root", "0::/\n", mounts, "/sys/fs/cgroup/unified", ""},
		{"a part is mounted", "0::/docker/1/x\n", "1 1 0:1 /docker/1 /my\\040groups rw - cgroup2 c rw\n", "/my groups/x", ""},
		{"another part is mounted", "0::/docker/12\n", "1 1 0:1 /docker/1 /g rw - cgroup2 c rw\n", "", "are not mounted"},
		{"first version only", "3:memory:/a\n", mounts, "", "is in no control group of the second version"},
		{"not mounted", "0::/\n", "1 1 0:1 / / rw - ext4 x rw\n", "", "are not mounted"},
		{"garbage", "0::x\n", "cgroup2\n - cgroup2", "", "is in no control group"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := groupDir([]byte(tt.membership), []byte(tt.mounts))
			if got != tt.want || (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("groupDir = %q, %v; want %q, %q", got, err, tt.want, tt.problem)
			}
		})
	}
}

// realGroup makes a group where this system allows it, and says why not.
func realGroup(t *testing.T, l Limits) *Group {
	t.Helper()

	base, _, err := FindGroupBase("", l)
	if err != nil {
		t.Skip(err)
	}
	g, err := NewGroup(base, fmt.Sprintf("tests-%d-%s", os.Getpid(), t.Name()), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for err := g.Remove(); errors.Is(err, unix.EBUSY); err = g.Remove() {
			_ = g.Kill()
		}
		if _, err := os.Stat(g.path); err == nil {
			t.Error("the group is still there")
		}
	})
	return g
}

// startIn runs a script in a group.
func startIn(t *testing.T, g *Group, script string) *os.Process {
	t.Helper()

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(shell, []string{"sh", "-c", "read -r go; " + script}, &os.ProcAttr{Files: []*os.File{r}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Add(p.Pid), w.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRealGroup(t *testing.T) {
	t.Parallel()

	g := realGroup(t, Limits{Tasks: NoLimit})
	if _, err := NewGroup(filepath.Dir(g.path), filepath.Base(g.path), Limits{Tasks: NoLimit}); err == nil {
		t.Error("a group that exists is made again")
	}
	p := startIn(t, g, "sleep 600 & wait")
	membership, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.Pid))
	if err != nil || !strings.Contains(string(membership), filepath.Base(g.path)) {
		t.Errorf("the program is in %q, %v", membership, err)
	}
	if err := g.Remove(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("removing a group in which something lives: %v", err)
	}
	if err := KillGroup(g.path); err != nil {
		t.Fatal(err)
	}
	state, err := p.Wait()
	if ws, ok := state.Sys().(syscall.WaitStatus); err != nil || !ok || ws.Signal() != syscall.SIGKILL {
		t.Errorf("the program ended with %v, %v", state, err)
	}
	if got := g.OOMKills(); got != 0 {
		t.Errorf("%d kills for memory", got)
	}
}

func TestRealMemoryLimit(t *testing.T) {
	t.Parallel()

	g := realGroup(t, Limits{Memory: 32 << 20, Tasks: 64})
	p := startIn(t, g, `x=y; while :; do x="$x$x"; done`)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if g.OOMKills() == 0 {
		t.Error("a program that fills the memory was not killed for it")
	}
}

func TestKillWithoutTheControlFile(t *testing.T) {
	t.Parallel()

	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "600"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	dir := fakeGroup(t, map[string]string{"cgroup.procs": fmt.Sprintf("%d\n0\nx\n", p.Pid)})
	if err := KillGroup(dir); err != nil {
		t.Fatal(err)
	}
	if state, err := p.Wait(); err != nil || state.Success() {
		t.Errorf("the program ended with %v, %v", state, err)
	}
	if err := KillGroup(t.TempDir()); err == nil {
		t.Error("a directory that is no group can be killed")
	}
}
