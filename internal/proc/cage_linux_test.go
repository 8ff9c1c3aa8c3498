package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

func TestGroupsOfDeadHostsAreSwept(t *testing.T) {
	t.Parallel()

	found, _, err := sandbox.FindGroupBase("", sandbox.Limits{Tasks: sandbox.NoLimit})
	if err != nil {
		t.Skip(err)
	}
	// A base of its own: hosts of other tests sweep too.
	base := filepath.Join(found, fmt.Sprintf("tests-sweep-%d", os.Getpid()))
	own := pidNamespace("self")
	random := "-" + strings.Repeat("0", 32)
	dead := filepath.Join(base, dirPrefix+identity(1, 1, own)+random) // nothing began at the time 1
	others := []string{
		filepath.Join(base, dirPrefix+identity(1, 1, "1")+random),
		filepath.Join(base, dirPrefix+hostIdentity()+random),
		filepath.Join(base, "other"),
	}
	all := append([]string{base, dead}, others...)
	for _, path := range all {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, path := range slices.Backward(all) {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		}
	})
	handle, err := os.Open(dead)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = handle.Close() }()
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(handle.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := sweepGroups(t.Context(), base); got != 1 {
		t.Errorf("swept %d groups, want 1", got)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("what lived in the group ended by itself")
	}
	for _, path := range others {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if got := sweepGroups(t.Context(), t.TempDir()); got != 0 {
		t.Errorf("swept %d groups of a directory that is none", got)
	}
}

func TestStraysAreClosed(t *testing.T) {
	// Not in parallel: a descriptor without FD_CLOEXEC would reach the children
	// of other tests.
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(unix.Close(pipe[0]), unix.Close(pipe[1])) }()
	stray, err := unix.FcntlInt(uintptr(pipe[1]), unix.F_DUPFD, 300)
	if err != nil {
		t.Fatal(err)
	}
	standard := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	got := withoutStrays(standard)
	if len(got) <= stray || !slices.Equal(got[:3], standard) || slices.ContainsFunc(got[3:], func(f *os.File) bool { return f != nil }) {
		t.Errorf("%d files, want at least %d, all but the first three nil", len(got), stray+1)
	}
	_ = unix.Close(stray)
	for fd := 3; fd < 4096; fd++ {
		unix.CloseOnExec(fd)
	}
	if got := withoutStrays(standard); len(got) != 3 {
		t.Errorf("%d files, although there is nothing to close", len(got))
	}
}
