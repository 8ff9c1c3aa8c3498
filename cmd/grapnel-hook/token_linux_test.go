package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestToken: a plugin of an agent learns where the gateway is and what it wants, by the checks that an event has.
func TestToken(t *testing.T) {
	t.Parallel()

	h := newHome(t)
	if code, out, errs := h.hook(t, nil, "--no-start", "--token"); code != exitBlocked || out != "" || !strings.HasPrefix(errs, "grapnel-hook: no gateway listens at ") {
		t.Errorf("no gateway: exit code %d: %q %q", code, out, errs)
	}
	if err := os.Mkdir(filepath.Dir(h.socket), 0o700); err != nil {
		t.Fatal(err)
	}
	listen(t, h.socket, func(conn *net.UnixConn) { _ = conn.Close() })
	if code, out, errs := h.hook(t, nil, "--no-start", "--token"); code != exitAllowed || out != h.socket+"\n\n" {
		t.Errorf("no token: exit code %d: %q %q", code, out, errs)
	}
	h.write(t, ".local/share/grapnel/token", "hush\n", 0o600)
	for _, args := range [][]string{{"--token"}, {"--socket", h.socket, "--config", "/c.yaml", "--no-start", "--token"}} {
		if code, out, errs := h.hook(t, nil, args...); code != exitAllowed || out != h.socket+"\nhush\n" {
			t.Errorf("%q: exit code %d: %q %q", args, code, out, errs)
		}
	}
	if code, out, errs := h.hook(t, nil, "--token", "claude-code"); code != exitBlocked || out != "" || !strings.Contains(errs, "usage: ") {
		t.Errorf("a host: exit code %d: %q %q", code, out, errs)
	}
	refused := func(what, want string) {
		t.Helper()
		if code, out, errs := h.hook(t, nil, "--token"); code != exitBlocked || strings.Contains(out, "hush") || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %q %q", what, code, out, errs)
		}
	}
	if err := os.Chmod(filepath.Join(h.dir, ".local/share/grapnel/token"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a token that others may read", "the token: ")
	if err := os.Chmod(filepath.Dir(h.socket), 0o777); err != nil {
		t.Fatal(err)
	}
	refused("a socket that others may replace", "others may write to")
}

// TestTokenStarts: a gateway that does not run is started.
func TestTokenStarts(t *testing.T) {
	t.Parallel()

	h := newUser(t, "  - {name: house, builtin: scripted, grants: {contribute: [decision]}, config: {hooks: [{id: guard, phase: tool.pre_call, role: validate, respond: []}]}}\n")
	h.wake(t)
	h.end(t, syscall.SIGKILL)
	code, out, errs := h.hook(t, nil, "--token")
	if lines := strings.Split(out, "\n"); code != exitAllowed || len(lines) != 3 || lines[0] != h.socket || lines[1] == "" {
		t.Errorf("exit code %d: %q %q", code, out, errs)
	}
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "--no-start", "claude-code", "UserPromptSubmit"); code != exitAllowed {
		t.Errorf("no gateway was started: exit code %d: %q", code, errs)
	}
}
