//go:build unix

package pluginfile_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// drive runs a plugin file in an agent that is made up.
func drive(t *testing.T, program, host, file string, env ...string) string {
	t.Helper()
	driver, err := filepath.Abs(filepath.Join("testdata", program))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", driver, file, host)
	cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), append([]string{"PATH=" + os.Getenv("PATH")}, env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// place is a directory for a socket, in one of its own.
func place(t *testing.T) string {
	t.Helper()
	above, err := os.MkdirTemp("", "plug") //nolint:usetesting // names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(above) })
	dir := filepath.Join(above, "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hostile is what may be where a plugin file looks for its gateway and its token. The first ones are for both agents.
type hostile struct {
	name   string
	spoil  func(dir, socket, token string) error
	answer func(net.Conn) // nil if no connection may come
	want   string
	root   bool
}

func spoils() []hostile {
	file := func(path string, mode os.FileMode) error {
		return errors.Join(os.WriteFile(path, []byte("x\n"), 0o600), os.Chmod(path, mode))
	}
	allow := func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1<<16))
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
		_ = conn.Close()
	}
	own := func(_, _, token string) error { return file(token, 0o600) }
	return []hostile{
		// Neither a token nor an event is sent to a socket at which another user could listen.
		{"a directory for all", func(dir, _, _ string) error { return os.Chmod(dir, 0o777) }, nil, "others may write to the directory", false},
		{"a sticky directory", func(dir, _, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, nil, "others may write to the directory", false},
		{"a parent for all", func(dir, _, _ string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, nil, "others may write to the directory", false},
		{"another user's directory", func(dir, _, _ string) error { return os.Chown(dir, nobody, nobody) }, nil, "belongs to another user", true},
		{"another user's socket", func(_, socket, _ string) error { return os.Chown(socket, nobody, nobody) }, nil, "belongs to another user", true},
		{"a link through another's", func(dir, _, _ string) error {
			theirs := filepath.Join(filepath.Dir(dir), "theirs")
			return errors.Join(os.Rename(dir, dir+"2"), os.Mkdir(theirs, 0o755), os.Symlink(dir+"2", filepath.Join(theirs, "link")),
				os.Symlink("theirs/link", dir), os.Chown(theirs, nobody, nobody))
		}, nil, "belongs to another user", true},
		{"links in a circle", func(dir, _, _ string) error { return errors.Join(os.Rename(dir, dir+"2"), os.Symlink("d", dir)) }, nil, "too many links", false},
		{"a link in place of the socket", func(_, socket, _ string) error {
			return errors.Join(os.Rename(socket, socket+"2"), os.Symlink(socket+"2", socket))
		}, nil, "is not a socket", false},
		{"no socket", func(_, socket, _ string) error { return os.Remove(socket) }, nil, "no such file", false},
		// The token is a file that this user alone may open.
		{"a link as token", func(_, _, token string) error {
			return errors.Join(file(token+"2", 0o600), os.Symlink(token+"2", token))
		}, allow, "ELOOP", false},
		{"a pipe as token", func(_, _, token string) error { return syscall.Mkfifo(token, 0o600) }, allow, "chmod 600", false},
		{"a token for all", func(_, _, token string) error { return file(token, 0o644) }, allow, "chmod 600", false},
		{"no token", func(string, string, string) error { return nil }, allow, "no such file", false},
		{"its own token", own, allow, "allowed", false},
		// A call is refused if the answer takes too long as a whole.
		{"a silent gateway", own, func(net.Conn) {}, "has not answered within 60 seconds", false},
		{"a gateway that drips", own, func(conn net.Conn) {
			_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 16000000\r\n\r\n"))
			for err == nil {
				_, err = conn.Write([]byte(" "))
			}
		}, "has not answered within 60 seconds", false},
		{"a gateway that breaks off", own, func(conn net.Conn) {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"))
			_ = conn.Close()
		}, "Grapnel decided nothing: ", false},
	}
}

// TestHostilePlaces: what is not this user's own, and answers in time, decides nothing.
func TestHostilePlaces(t *testing.T) {
	t.Parallel()

	files := map[string]string{"opencode": write(t, "opencode"), "amp": write(t, "amp")}
	for _, tt := range spoils() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.root && os.Geteuid() != 0 {
				t.Skip("only root can make it")
			}
			for host, file := range files {
				if host == "amp" && tt.answer != nil {
					continue // both files begin with the same gateway.ts
				}
				dir := place(t)
				socket, token := filepath.Join(dir, "s"), filepath.Join(dir, "grapnel", "token")
				answer := tt.answer
				if answer == nil {
					answer = func(net.Conn) { t.Errorf("%s: a connection came", host) }
				}
				l := listen(t, socket, answer)
				if err := errors.Join(os.Mkdir(filepath.Dir(token), 0o700), tt.spoil(dir, socket, token)); err != nil {
					t.Fatal(err)
				}
				got := drive(t, "refused.mjs", host, file, "HOME="+dir, "XDG_DATA_HOME="+dir, "GRAPNEL_SOCKET="+socket)
				if !strings.Contains(got, tt.want) || tt.want != "allowed" && !strings.Contains(got, "Grapnel decided nothing: ") {
					t.Errorf("%s: %s", host, got)
				}
				_ = l.Close()
			}
		})
	}
}

// TestRelativePlaces: the project that an agent works in cannot bring a socket or a token.
func TestRelativePlaces(t *testing.T) {
	t.Parallel()

	file := write(t, "opencode")
	home := place(t)
	for env, want := range map[string]string{
		"HOME=" + home + " XDG_RUNTIME_DIR=run":  home + "/.grapnel",
		"HOME=home XDG_RUNTIME_DIR=run":          "is not absolute",
		"HOME=" + home + " GRAPNEL_SOCKET=run/s": "is not absolute",
	} {
		if got := drive(t, "refused.mjs", "opencode", file, strings.Fields(env)...); !strings.Contains(got, want) {
			t.Errorf("%q: %s", env, got)
		}
	}
}

func write(t *testing.T, host string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "grapnel.mjs")
	if err := os.WriteFile(file, javascript(t, host), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// listen has each connection to a socket answered.
func listen(t *testing.T, socket string, answer func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn)
			defer conn.Close() //nolint:errcheck // it was only held open
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l
}
