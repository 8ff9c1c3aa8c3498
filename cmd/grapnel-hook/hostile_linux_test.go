package main

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

const nobody = 65534

// TestPlacesOfOthers: nothing is sent to a socket that another user made or could replace, and no gateway is started
// there.
func TestPlacesOfOthers(t *testing.T) {
	t.Parallel()

	h := newHome(t)
	for name, tt := range map[string]struct {
		spoil func(dir, socket string) error
		want  string
		root  bool
	}{
		"a directory for all":           {func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "others may write to the directory", false},
		"a sticky directory":            {func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, "others may write to the directory", false},
		"a parent for all":              {func(dir, _ string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "others may write to the directory", false},
		"another group's":               {func(dir, _ string) error { return errors.Join(os.Chown(dir, -1, nobody), os.Chmod(dir, 0o770)) }, "others may write to the directory", true},
		"another user's directory":      {func(dir, _ string) error { return os.Chown(dir, nobody, nobody) }, "belongs to another user", true},
		"another user's parent":         {func(dir, _ string) error { return os.Chown(filepath.Dir(dir), nobody, nobody) }, "belongs to another user", true},
		"another user's socket":         {func(_, socket string) error { return os.Chown(socket, nobody, nobody) }, "belongs to another user", true},
		"a link in another's directory": {linkThrough, "belongs to another user", true},
		"a link in place of the socket": {func(_, socket string) error {
			return errors.Join(os.Rename(socket, socket+"2"), os.Symlink(socket+"2", socket))
		}, "is not a socket", false},
		"a pipe in place of the socket":  {func(_, socket string) error { return errors.Join(os.Remove(socket), syscall.Mkfifo(socket, 0o600)) }, "is not a socket", false},
		"a file in place of the socket":  {func(_, socket string) error { return errors.Join(os.Remove(socket), os.WriteFile(socket, nil, 0o600)) }, "is not a socket", false},
		"nothing in a directory for all": {func(dir, socket string) error { return errors.Join(os.Remove(socket), os.Chmod(dir, 0o777)) }, "others may write to the directory", false},
	} {
		if tt.root && os.Geteuid() != 0 {
			t.Logf("%s: only root can make it", name)
			continue
		}
		place := h.place(t)
		socket := filepath.Join(place, "s")
		stop := listen(t, socket, silent)
		if err := tt.spoil(place, socket); err != nil {
			t.Fatal(err)
		}
		code, out, errs := h.hook(t, strings.NewReader(prompt), "--socket", socket, "codex", "PreToolUse")
		if code != exitBlocked || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
		if n := stop(); n != 0 {
			t.Errorf("%s: %d connections", name, n)
		}
		if found, err := filepath.Glob(filepath.Join(place, "*.l*")); err != nil || len(found) > 0 {
			t.Errorf("%s: it made %v, %v", name, found, err)
		}
	}
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "--socket", "run/s", "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, `"run/s" is not absolute`) {
		t.Errorf("a relative path: exit code %d: %s", code, errs)
	}
}

// linkThrough puts the directory elsewhere, with a link to it, through one that another user may change.
func linkThrough(dir, _ string) error {
	theirs := filepath.Join(filepath.Dir(dir), "theirs")
	return errors.Join(os.Rename(dir, dir+"2"), os.Mkdir(theirs, 0o755), os.Symlink(dir+"2", filepath.Join(theirs, "link")),
		os.Symlink(filepath.Join(theirs, "link"), dir), os.Chown(theirs, nobody, nobody))
}

// place makes a directory for a socket, in one of its own.
func (h *home) place(t *testing.T) string {
	t.Helper()
	above, err := os.MkdirTemp(h.dir, "p") //nolint:usetesting // names of sockets are short
	dir := filepath.Join(above, "d")
	if err = errors.Join(err, os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// silent answers nothing.
func silent(*net.UnixConn) {}

// drips answers one byte after the other, for as long as somebody reads.
func drips(conn *net.UnixConn) {
	_ = conn.SetWriteBuffer(1)           // the reader is not far behind
	_, err := conn.Read(make([]byte, 1)) // a request has come
	for err == nil {
		_, err = conn.Write([]byte("x"))
	}
}

// TestFilesOfOthers: the files beside the socket, and the token, are not opened through links or pipes, nor if others may
// open them.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()

	h := newHome(t)
	h.write(t, "bin/grapnel", "#!/bin/sh\nexit 1\n", 0o700)
	h.write(t, "precious", "precious", 0o600)
	precious := filepath.Join(h.dir, "precious")
	spoils := map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink(precious, path) },
		"a dead link": func(path string) error { return os.Symlink(path+".made", path) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a file for all": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, 0o644))
		},
	}
	if os.Geteuid() == 0 {
		spoils["another user's"] = func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chown(path, nobody, nobody))
		}
	}
	for name, spoil := range spoils {
		for _, file := range []string{"s.lock", "hook.log"} {
			place := h.place(t)
			if err := spoil(filepath.Join(place, file)); err != nil {
				t.Fatal(err)
			}
			code, _, errs := h.hook(t, strings.NewReader(prompt), "--socket", filepath.Join(place, "s"), "codex", "PreToolUse")
			if code != exitBlocked || !strings.Contains(errs, filepath.Join(place, file)) {
				t.Errorf("%s, %s: exit code %d: %s", name, file, code, errs)
			}
			if _, err := os.Lstat(filepath.Join(place, file+".made")); err == nil {
				t.Errorf("%s, %s: it made the file", name, file)
			}
		}
		token := filepath.Join(h.dir, ".local", "share", "grapnel", "token")
		if err := errors.Join(os.MkdirAll(filepath.Dir(token), 0o700), spoil(token)); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(h.place(t), "s")
		stop := listen(t, socket, says("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
		if code, out, errs := h.hook(t, strings.NewReader(prompt), "--socket", socket, "codex", "PreToolUse"); code != exitBlocked || out != "" || !strings.Contains(errs, token) {
			t.Errorf("%s, token: exit code %d: %s%s", name, code, out, errs)
		}
		stop()
		if err := os.RemoveAll(token); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("the linked file has %q, %v", text, err)
	}
}

// TestTotalTime: whatever takes too long, an event is decided by the installation within the time given.
func TestTotalTime(t *testing.T) {
	t.Parallel()

	h := newHome(t)
	never, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close() //nolint:errcheck // nothing is read
	defer w.Close()     //nolint:errcheck // nothing is written
	for _, tt := range []struct {
		answer func(*net.UnixConn)
		in     io.Reader
		args   string
		code   int
		want   string
	}{
		{silent, strings.NewReader(prompt), "--timeout 50ms", exitBlocked, "has not answered within 50ms"},
		{silent, strings.NewReader(prompt), "--timeout 50ms --on-failure allow", exitAllowed, "allowed, as installed"},
		{drips, strings.NewReader(prompt), "--timeout 300ms", exitBlocked, "has not answered within 300ms"},
		{silent, never, "--timeout 50ms", exitBlocked, "standard input has no end within 50ms"},
	} {
		socket := filepath.Join(h.place(t), "s")
		stop := listen(t, socket, tt.answer)
		if code, _, errs := h.hook(t, tt.in, append(strings.Fields(tt.args), "--socket", socket, "codex", "PreToolUse")...); code != tt.code || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d: %s", tt.want, code, errs)
		}
		stop()
	}
	held := filepath.Join(h.place(t), "s")
	lock, err := os.OpenFile(held+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() //nolint:errcheck // it was only locked
	if code, _, errs := h.hook(t, strings.NewReader(prompt), "--socket", held, "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "with the lock "+held+".lock") {
		t.Errorf("a lock held for ever: exit code %d: %s", code, errs)
	}
	for _, bad := range []string{"0s", "-1s", "soon", ""} {
		if code, _, errs := h.hook(t, strings.NewReader(prompt), "--timeout", bad, "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, "give a time such as 25s") {
			t.Errorf("--timeout %q: exit code %d: %s", bad, code, errs)
		}
	}
}

// TestWhyItEnded: a gateway that is started and ends says why, before and after it listens.
func TestWhyItEnded(t *testing.T) {
	t.Parallel()

	h := newHome(t)
	for name, tt := range map[string]struct{ script, want string }{
		"an error":      {"echo some log >&2\necho 'grapnel: c.yaml:3:5: no such plugin' >&2\nexit 2\n", "has ended (exit code 2): c.yaml:3:5: no such plugin; see hook.log beside "},
		"several lines": {"printf 'grapnel: c.yaml:3:5: bad\\n  3 | x\\n' >&2\nexit 2\n", "has ended (exit code 2): c.yaml:3:5: bad\n  3 | x; see hook.log beside "},
		"nothing":       {"exit 3\n", "has ended (exit code 3); see hook.log beside "},
		"a signal":      {"kill -9 $$\n", "has ended (signal 9); see hook.log beside "},
	} {
		socket := filepath.Join(h.place(t), "s")
		h.write(t, "bin/grapnel", "#!/bin/sh\necho 'grapnel: an older error' >&2\nexit 1\n", 0o700)
		h.hook(t, strings.NewReader(prompt), "--socket", socket, "codex", "PreToolUse")
		h.write(t, "bin/grapnel", "#!/bin/sh\n"+tt.script, 0o700)
		if code, _, errs := h.hook(t, strings.NewReader(prompt), "--socket", socket, "codex", "PreToolUse"); code != exitBlocked || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
}

// TestWholeAnswer: a connection that breaks behind a whole answer has still answered.
func TestWholeAnswer(t *testing.T) {
	t.Parallel()

	const head = "HTTP/1.0 403 Forbidden\r\nContent-Length: 2\r\n\r\n"
	for text, whole := range map[string]bool{head + "no": true, head + "n": false, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n": false} {
		header, body, err := read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(syscall.ECONNRESET)))
		if (err == nil) != whole || whole && header+"\r\n\r\n"+string(body) != text {
			t.Errorf("%q: %q, %q, %v", text, header, body, err)
		}
	}
}
