package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	patience = time.Minute
	prompt   = `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hi","prompt_id":"1"}`
)

// home is a user with both programs and a directory for sockets. Its path is short: those of sockets are bounded.
type home struct{ dir, socket string }

func newHome(t *testing.T, programs ...string) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "hook") //nolint:usetesting // the test's own directory has a long path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range append(programs, "grapnel-hook") {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "bin", name), "../"+name)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return &home{dir, filepath.Join(dir, "grapnel", "hook.sock")}
}

// hook runs the program as an agent does.
func (h *home) hook(t *testing.T, payload io.Reader, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(h.dir, "bin", "grapnel-hook"), args...)
	cmd.Env = []string{"HOME=" + h.dir, "XDG_RUNTIME_DIR=" + h.dir, "XDG_CONFIG_HOME=" + h.dir, "PATH="}
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = payload, &o, &e
	if err := cmd.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// TestFailures: whatever goes wrong, a deciding event is blocked and another one allowed, unless the installation says
// otherwise; and nothing that is not a whole answer is one.
func TestFailures(t *testing.T) {
	t.Parallel()

	h := newHome(t)
	if err := os.Mkdir(filepath.Dir(h.socket), 0o700); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{
		"nothing":          "",
		"half a header":    "HTTP/1.0 200 OK\r\nContent-Le",
		"half an answer":   "HTTP/1.0 200 OK\r\nContent-Length: 20\r\n\r\n{\"decision\":",
		"no length":        "HTTP/1.0 200 OK\r\n\r\n{}",
		"another protocol": "SSH-2.0-OpenSSH\r\n\r\n200 ",
		"an error":         "HTTP/1.0 422 Unprocessable Entity\r\nContent-Length: 7\r\n\r\nnot now",
	}
	for name, answer := range answers {
		stop := serveText(t, h.socket, answer)
		for _, tt := range []struct {
			args []string
			code int
		}{
			{[]string{"codex", "PreToolUse"}, exitBlocked},
			{[]string{"codex"}, exitBlocked},
			{[]string{"codex", "SessionStart"}, exitAllowed},
			{[]string{"--on-failure", "allow", "codex", "PreToolUse"}, exitAllowed},
			{[]string{"--on-failure", "block", "codex", "SessionStart"}, exitBlocked},
		} {
			code, out, errs := h.hook(t, strings.NewReader(prompt), tt.args...)
			if code != tt.code || out != "" || !strings.HasPrefix(errs, "grapnel-hook: ") || strings.Contains(errs, "hook.log beside "+h.socket) == (name == "an error") {
				t.Errorf("%s, %v: exit code %d, want %d: %q %q", name, tt.args, code, tt.code, out, errs)
			}
		}
		stop()
	}
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "--no-start", "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "no gateway listens at") {
		t.Errorf("no gateway: exit code %d: %s", code, errs)
	}
	for _, env := range [][]string{nil, {"HOME="}, {"HOME=relative", "XDG_RUNTIME_DIR=run"}} { // a repository could hold a relative place
		cmd := exec.CommandContext(t.Context(), filepath.Join(h.dir, "bin", "grapnel-hook"), "codex", "PreToolUse")
		cmd.Dir, cmd.Env, cmd.Stdin = t.TempDir(), append([]string{"PATH="}, env...), strings.NewReader(prompt)
		out, _ := cmd.CombinedOutput() // the exit code is looked at
		left, err := os.ReadDir(cmd.Dir)
		if cmd.ProcessState.ExitCode() != exitBlocked || !strings.Contains(string(out), "neither $HOME nor $XDG_RUNTIME_DIR") || err != nil || len(left) > 0 {
			t.Errorf("%q: %s, %s, %v %v", env, cmd.ProcessState, out, left, err)
		}
	}
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "neither beside this one nor in the PATH") {
		t.Errorf("no program: exit code %d: %s", code, errs)
	}
	const fake = "#!/bin/sh\necho \"$@\" >\"$0.args\"\n"
	program := filepath.Join(h.dir, "bin", "grapnel")
	if err := os.WriteFile(program, []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "--config", "/c.yaml", "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "has ended (exit code 0); see hook.log beside "+h.socket) {
		t.Errorf("a gateway that ends: exit code %d: %s", code, errs)
	}
	if args, err := os.ReadFile(program + ".args"); err != nil || string(args) != "serve --socket "+h.socket+" --config /c.yaml\n" {
		t.Errorf("it was started with %q, %v", args, err)
	}
	if code, _, errs := h.hook(t, io.LimitReader(spaces{}, 100<<20), "--no-start", "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "longer than 1 MiB") {
		t.Errorf("100 MB: exit code %d: %s", code, errs)
	}
	for _, payload := range []string{"", " \n"} {
		if code, _, errs := h.hook(t, strings.NewReader(payload), "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "standard input is empty") {
			t.Errorf("the payload %q: exit code %d: %s", payload, code, errs)
		}
	}
	for _, args := range [][]string{{}, {"--socket"}, {"--on-failure", "maybe", "codex"}, {"codex", "A", "B"}, {"../rpc"}, {"--verbose", "codex"}} {
		if code, _, errs := h.hook(t, strings.NewReader(prompt), args...); code != exitBlocked || !strings.Contains(errs, "usage: ") {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// serveText answers every request with a text and closes the connection.
func serveText(t *testing.T, socket, answer string) (stop func()) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<16))
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	})
	return func() {
		_ = l.Close()
		serving.Wait()
	}
}

// TestGateway: a gateway that nobody started is started once, answers, and is started again after it was killed.
func TestGateway(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the gateway")
	}
	t.Parallel()

	h := newHome(t, "grapnel")
	t.Cleanup(func() { h.kill(t) })
	h.wake(t)
	if code, _, errs := h.hook(t, strings.NewReader(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":7}`), "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "decided nothing") {
		t.Errorf("a payload that is not the host's: exit code %d: %s", code, errs)
	}
	h.kill(t)
	if code, _, _ := h.hook(t, strings.NewReader(prompt), "--no-start", "claude-code", "UserPromptSubmit"); code != exitBlocked {
		t.Errorf("after a kill: exit code %d", code)
	}
	before := h.started(t)
	var hooks sync.WaitGroup
	for range 8 {
		hooks.Go(func() { h.hook(t, strings.NewReader(prompt), "claude-code", "UserPromptSubmit") })
	}
	hooks.Wait()
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "claude-code", "UserPromptSubmit"); code != exitAllowed {
		t.Errorf("after another start: exit code %d: %s", code, errs)
	}
	if n := h.started(t) - before; n != 1 {
		t.Errorf("%d gateways were started, want 1", n)
	}
}

// wake starts a gateway. That takes longer than a hook waits on a busy machine, the first one above all, which prepares the
// user's directories.
func (h *home) wake(t *testing.T, args ...string) {
	t.Helper()
	for begun := time.Now(); ; {
		code, _, errs := h.hook(t, strings.NewReader(prompt), append(args, "claude-code", "UserPromptSubmit")...)
		if code == exitAllowed {
			return
		} else if time.Since(begun) > patience {
			t.Fatalf("exit code %d: %s", code, errs)
		}
	}
}

// started is how many gateways have listened.
func (h *home) started(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(filepath.Dir(h.socket), "hook.log"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte("listening on unix:"))
}

// kill ends the gateway without a chance to clean up.
func (h *home) kill(t *testing.T) {
	t.Helper()
	h.end(t, syscall.SIGKILL)
}

// end ends the gateway by a signal, if there is one, and waits for it.
func (h *home) end(t *testing.T, by syscall.Signal) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: h.socket, Net: "unix"})
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // it is killed
	pid, err := peer(conn)
	if err != nil {
		t.Fatal(err)
	}
	ending, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ending) //nolint:errcheck // it is only waited for
	if err := errors.Join(syscall.Kill(pid, by), conn.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(ending), Events: unix.POLLIN}}, int(patience.Milliseconds())); n != 1 {
		t.Fatal("the gateway does not end", err)
	}
}
