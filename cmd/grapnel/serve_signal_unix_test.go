//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// signalConfig is a plugin that works for a minute when it is called, does not
// listen, and ignores SIGTERM from then on.
const signalConfig = `version: 1
budgets:
  turn: {time: 60s}
  phases: {turn.pre_prompt_compile: {time: 60s}}
plugins:
  - name: bad
    command: ./badplugin
    args: [stubborn]
    grants: {contribute: ['*'], sections: ['*']}
    subscriptions: {bad.h: {timeout: 60s}}
`

// serveStubborn starts a gateway with such a plugin as the leader of a process group,
// as a shell does, and returns the plugin's process number.
func serveStubborn(t *testing.T) (s *served, plugin int) {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"badplugin": ourselves(t), "grapnel.yaml": signalConfig, "tokens.yaml": "tokens:\n" + tokenLine("ada", "one", "dispatch")})
	s = serveAs(t, dir, &syscall.SysProcAttr{Setpgid: true}, "--config", filepath.Join(dir, "grapnel.yaml"), "--token-file", filepath.Join(dir, "tokens.yaml"), "--log-level", "info")
	s.errs.until(t, "state=ready")
	return s, pluginProcess(t, s.cmd.Process.Pid)
}

// pluginProcess finds the one plugin of a host by the mark in its environment.
func pluginProcess(t *testing.T, host int) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Skip("no /proc")
	}
	mark := fmt.Appendf(nil, "GRAPNEL_MARK=%d.", host)
	var found []int
	for _, file := range files {
		data, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && bytes.Contains(data, mark) {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the host has the plugins %v", found)
	}
	return found[0]
}

// lives reports whether a process is there and no zombie.
func lives(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(data, []byte(") Z "))
}

// TestSecondSignal: a gateway that is told to end lets the call on its way finish; who
// does not want to wait tells it again, and it ends now, its plugins with it.
func TestSecondSignal(t *testing.T) {
	t.Parallel()

	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()

			s, plugin := serveStubborn(t)
			c := dial(t, s.target(), "one")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			called := make(chan error, 1)
			go func() {
				called <- c.Call(ctx, "phase/dispatch", object{"phase": "turn.pre_prompt_compile", "input": object{}}, nil)
			}()
			s.errs.until(t, "msg=ready") // the plugin is at work
			if err := s.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			s.errs.until(t, "ending; a second signal")
			if err := s.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			s.errs.until(t, "")
			s.ended = true
			if err := s.cmd.Wait(); err == nil {
				t.Error("it ended as if nobody had been in a hurry")
			}
			if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != signal {
				t.Errorf("it ended with %v", s.cmd.ProcessState)
			}
			if err := <-called; err == nil {
				t.Error("the call was answered")
			}
			for deadline := time.Now().Add(longest); lives(plugin); {
				if time.Now().After(deadline) {
					t.Fatal("the plugin outlives it")
				}
				<-time.After(5 * time.Millisecond)
			}
		})
	}
}

// TestTerminalInterrupt: Ctrl-C at the terminal goes to all of the foreground group.
// Plugins are in groups of their own: they hear of it from their host alone, and end in
// an orderly way.
func TestTerminalInterrupt(t *testing.T) {
	t.Parallel()

	s, plugin := serveStubborn(t)
	host := s.cmd.Process.Pid
	group, err := syscall.Getpgid(plugin)
	if err != nil || group != plugin {
		t.Errorf("the plugin %d is in the group %d of the host %d: %v", plugin, group, host, err)
	}
	if err := syscall.Kill(-host, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	said := s.errs.until(t, "")
	s.ended = true
	if err := s.cmd.Wait(); err != nil || strings.Contains(said, "crash") {
		t.Errorf("it ended with %v:\n%s", err, said)
	}
	if lives(plugin) {
		t.Error("the plugin lives")
	}
}
