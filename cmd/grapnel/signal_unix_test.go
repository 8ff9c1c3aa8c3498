//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowConfig is a plugin that would work for a minute.
const slowConfig = `version: 1
budgets: {phases: {tool.pre_call: {time: 60s}}}
plugins:
  - name: slow
    builtin: scripted
    config: {hooks: [{id: a, phase: tool.pre_call, timeout: 60s, delay: 60s}]}
`

// command prepares this binary as the command line, with a directory of its own for
// the sockets of plugins.
func programCommand(t *testing.T, args ...string) (cmd *exec.Cmd, run string) {
	t.Helper()
	return commandFor(t, longest, args...)
}

// commandFor is command with a bound of its own.
func commandFor(t *testing.T, most time.Duration, args ...string) (cmd *exec.Cmd, run string) {
	t.Helper()
	self := must(os.Executable())(t)
	run = t.TempDir()
	if err := os.Chmod(run, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, self)
	cmd.Args = append([]string{"grapnel"}, args...)
	cmd.Env = []string{"XDG_RUNTIME_DIR=" + run, "XDG_CONFIG_HOME=" + run, "HOME=" + run, "PATH=" + os.Getenv("PATH"), "GORACE=" + raceOptions, "GOCOVERDIR=" + t.TempDir()}
	return cmd, run
}

// TestInterrupted ends a command by a signal while its plugin works: it ends
// with the shells' code for that, prints nothing, and leaves nothing behind.
func TestInterrupted(t *testing.T) {
	t.Parallel()

	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()

			file := filepath.Join(t.TempDir(), "slow.yaml")
			put(t, file, slowConfig)
			cmd, run := programCommand(t, "dispatch", "tool.pre_call", "--config", file, "--log-level", "info", "--json")
			var out strings.Builder
			cmd.Stdout = &out
			errs := must(cmd.StderrPipe())(t)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			log := bufio.NewReader(errs)
			for line := ""; !strings.Contains(line, "state=ready"); {
				line = must(log.ReadString('\n'))(t)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			rest := must(io.ReadAll(log))(t) // ends when no process holds it any more
			if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != exitInterrupted {
				t.Errorf("got %v, want exit code %d", err, exitInterrupted)
			}
			if !strings.HasSuffix(string(rest), "grapnel: interrupted\n") || out.String() != "" {
				t.Errorf("standard error ends with %q, standard output has %q", rest, out.String())
			}
			if left, err := filepath.Glob(filepath.Join(run, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// TestClosedPipe prints to a reader that has gone: that is no error to speak of.
func TestClosedPipe(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"version"}, {"plan"}, {"compile", "--json"}, {"--help"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()

			cmd, _ := programCommand(t, args...)
			cmd.Dir = t.TempDir()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			var errs strings.Builder
			cmd.Stdout, cmd.Stderr = w, &errs
			err = cmd.Run()
			if closed := w.Close(); closed != nil {
				t.Fatal(closed)
			}
			if err != nil || lateStart.ReplaceAllString(errs.String(), "") != "" {
				t.Errorf("got %v and %q", err, errs.String())
			}
		})
	}
}

// TestFullDisk says that the result could not be written.
func TestFullDisk(t *testing.T) {
	t.Parallel()

	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close() //nolint:errcheck // a device
	cmd, _ := programCommand(t, "version")
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = full, &errs
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != exitUnable {
		t.Errorf("got %v, want exit code %d", err, exitUnable)
	}
	if !strings.HasPrefix(errs.String(), "grapnel: writing the result: ") {
		t.Errorf("standard error has %q", errs.String())
	}
}
