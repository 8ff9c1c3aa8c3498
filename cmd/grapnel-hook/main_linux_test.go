package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// TestMain removes the programs that the tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := programs(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// programs is a directory with grapnel-hook, and with grapnel unless tests are to be short. They are built once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-ldflags=-w", "-o", dir, "."} // without what only a debugger needs
	if !testing.Short() {
		args = append(args, "../grapnel")
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// home is a user with a directory for sockets. Its path is short: those of sockets are bounded.
type home struct{ dir, socket string }

// newHome is a user who has grapnel-hook alone.
func newHome(t *testing.T) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "hook") //nolint:usetesting // the test's own directory has a long path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &home{dir, filepath.Join(dir, "grapnel", "hook.sock")}
	h.link(t, "grapnel-hook")
	return h
}

// newUser is a user who has both programs, and a configuration with these plugins. The test's end ends the gateway.
func newUser(t *testing.T, plugins string) *home {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts gateways")
	}
	h := newHome(t)
	h.link(t, "grapnel")
	t.Cleanup(func() { h.end(t, syscall.SIGKILL) })
	h.configure(t, plugins)
	return h
}

func (h *home) link(t *testing.T, program string) {
	t.Helper()
	built, err := programs()
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(h.dir, "bin"), 0o700), os.Link(filepath.Join(built, program), filepath.Join(h.dir, "bin", program)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *home) configure(t *testing.T, plugins string) {
	t.Helper()
	h.write(t, "grapnel/grapnel.yaml", "version: 1\nstore: sqlite:"+h.dir+"/grapnel.db\nplugins:\n"+strings.ReplaceAll(plugins, "HOME/", h.dir+"/"), 0o600)
}

func (h *home) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

// grapnel runs the command in a directory. Refused is what it says if it ends with another exit code than 0.
func (h *home) grapnel(t *testing.T, dir, in string, args ...string) (out, refused string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(h.dir, "bin", "grapnel"), args...)
	cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(in), append(os.Environ(), "HOME="+h.dir, "XDG_RUNTIME_DIR="+h.dir, "XDG_CONFIG_HOME="+h.dir)
	var errs strings.Builder
	cmd.Stderr = &errs
	said, err := cmd.Output()
	switch {
	case cmd.ProcessState == nil:
		t.Fatal(err)
	case err != nil:
		refused = errs.String()
	}
	return string(said), refused
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
		stop := listen(t, h.socket, says(answer))
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
	h.write(t, "bin/grapnel", fake, 0o700)
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "--config", "/c.yaml", "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "has ended (exit code 0); see hook.log beside "+h.socket) {
		t.Errorf("a gateway that ends: exit code %d: %s", code, errs)
	}
	if args, err := os.ReadFile(filepath.Join(h.dir, "bin", "grapnel.args")); err != nil || string(args) != "serve --socket "+h.socket+" --config /c.yaml\n" {
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

// listen has the connections to a socket answered, which are open until the end. Stop returns how many there were.
func listen(t *testing.T, socket string, answer func(*net.UnixConn)) (stop func() int) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	conns := 0
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			defer conn.Close() //nolint:errcheck // it was only held open
			conns++
			answer(conn)
		}
	})
	stop = func() int {
		_ = l.Close()
		serving.Wait()
		return conns
	}
	t.Cleanup(func() { stop() })
	return stop
}

// says answers with a text, and closes the connection.
func says(text string) func(*net.UnixConn) {
	return func(conn *net.UnixConn) {
		_, _ = conn.Read(make([]byte, 1<<16))
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

// wake starts a gateway. That takes longer than a hook waits on a busy machine, the first one above all, which prepares the
// user's directories.
func (h *home) wake(t *testing.T) {
	t.Helper()
	for begun := time.Now(); ; {
		code, _, errs := h.hook(t, strings.NewReader(prompt), "claude-code", "UserPromptSubmit")
		if code == exitAllowed {
			return
		} else if time.Since(begun) > patience {
			t.Fatalf("exit code %d: %s", code, errs)
		}
	}
}

// end ends the gateway by a signal, if there is one, and waits for it.
func (h *home) end(t *testing.T, by syscall.Signal) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: h.socket, Net: "unix"})
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // it is killed
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var peer *unix.Ucred
	controlled := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(controlled, err); err != nil {
		t.Fatal(err)
	}
	ending, err := unix.PidfdOpen(int(peer.Pid), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ending) //nolint:errcheck // it is only waited for
	if err := errors.Join(syscall.Kill(int(peer.Pid), by), conn.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(ending), Events: unix.POLLIN}}, int(patience.Milliseconds())); n != 1 {
		t.Fatal("the gateway does not end", err)
	}
}
