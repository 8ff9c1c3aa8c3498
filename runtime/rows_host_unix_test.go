//go:build unix

package runtime_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// kill ends the processes of this host whose arguments have a word, by force.
func kill(t *testing.T, word string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Appendf(nil, "GRAPNEL_MARK=%d.", os.Getpid())
	killed := 0
	for _, dir := range dirs {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && bytes.Contains(env, mark) && bytes.Contains(line, []byte(word+"\x00")) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			killed++
		}
	}
	if killed == 0 {
		t.Fatalf("no process with the argument %s", word)
	}
}

// rowNoDescriptors is row 42: a host that has no descriptor left for a start waits
// and tries again, for more times than a plugin may fail, and the plugin is back when
// there are some.
func rowNoDescriptors(t *testing.T, b *processBench) {
	t.Helper()
	eng := b.startWith(t, patient(bad(t, "bad", "good")), runtime.Options{})
	b.awaitState(t, "bad", phases.PluginReady, 1)
	var rich syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &rich); err != nil {
		t.Fatal(err)
	}
	poor := rich
	kill(t, "good")
	poor.Cur = 3 // what is open stays open
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &poor); err != nil {
		t.Fatal(err)
	}
	last := b.await(t, "more waits than a quarantine takes", waits(6, phases.CauseUnavailable))
	row := rowOf(t, eng, "bad")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &rich); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(last.Message+last.Detail, "too many open files") || row.Restarts == 0 {
		t.Errorf("plugin = %+v, %+v", row, last)
	}
	b.awaitState(t, "bad", phases.PluginReady, 2)
	if n := b.count("quarantined", "unavailable"); n != 0 {
		t.Errorf("events: %v", b.summary())
	}
}

// waits is the n-th wait of the bad plugin for one cause.
func waits(n int, cause phases.Cause) func(runtime.Event) bool {
	return func(e runtime.Event) bool {
		if e.Kind == runtime.EventPlugin && e.State == string(phases.PluginBackoff) && e.Code == string(cause) {
			n--
		}
		return n == 0
	}
}
