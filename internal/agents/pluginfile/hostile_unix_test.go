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

// refusedFor runs a plugin file without a gateway, and returns why it refused a call.
func refusedFor(t *testing.T, host, file string, env ...string) string {
	t.Helper()
	return drive(t, "refused.mjs", host, file, env...)
}

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

// TestSocketsOfOthers: neither a token nor an event is sent to a socket at which another user could listen.
func TestSocketsOfOthers(t *testing.T) {
	t.Parallel()

	files := map[string]string{"opencode": write(t, "opencode"), "amp": write(t, "amp")}
	for name, tt := range map[string]struct {
		spoil func(dir, socket string) error
		want  string
		root  bool
	}{
		"a directory for all":      {func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "others may write to the directory", false},
		"a sticky directory":       {func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, "others may write to the directory", false},
		"a parent for all":         {func(dir, _ string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "others may write to the directory", false},
		"another user's directory": {func(dir, _ string) error { return os.Chown(dir, nobody, nobody) }, "belongs to another user", true},
		"another user's socket":    {func(_, socket string) error { return os.Chown(socket, nobody, nobody) }, "belongs to another user", true},
		"a link through another's": {func(dir, _ string) error {
			theirs := filepath.Join(filepath.Dir(dir), "theirs")
			return errors.Join(os.Rename(dir, dir+"2"), os.Mkdir(theirs, 0o755), os.Symlink(dir+"2", filepath.Join(theirs, "link")),
				os.Symlink("theirs/link", dir), os.Chown(theirs, nobody, nobody))
		}, "belongs to another user", true},
		"links in a circle": {func(dir, _ string) error { return errors.Join(os.Rename(dir, dir+"2"), os.Symlink("d", dir)) }, "too many links", false},
		"a link in place of the socket": {func(_, socket string) error {
			return errors.Join(os.Rename(socket, socket+"2"), os.Symlink(socket+"2", socket))
		}, "is not a socket", false},
		"nothing": {func(_, socket string) error { return os.Remove(socket) }, "no such file", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.root && os.Geteuid() != 0 {
				t.Skip("only root can make it")
			}
			for host, file := range files {
				dir := place(t)
				socket := filepath.Join(dir, "s")
				l := listen(t, socket, func(conn net.Conn) { t.Errorf("%s: a connection came", host) })
				if err := tt.spoil(dir, socket); err != nil {
					t.Fatal(err)
				}
				if got := refusedFor(t, host, file, "HOME="+dir, "GRAPNEL_SOCKET="+socket, "GRAPNEL_TOKEN=secret"); !strings.Contains(got, "Grapnel decided nothing: ") || !strings.Contains(got, tt.want) {
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
	for _, tt := range []struct {
		env  []string
		want string
	}{
		{[]string{"HOME=" + home, "XDG_RUNTIME_DIR=run"}, home + "/.grapnel"},
		{[]string{"HOME=home", "XDG_RUNTIME_DIR=run"}, "is not absolute"},
		{[]string{"HOME=" + home, "GRAPNEL_SOCKET=run/s"}, "is not absolute"},
	} {
		if got := refusedFor(t, "opencode", file, tt.env...); !strings.Contains(got, tt.want) {
			t.Errorf("%q: %s", tt.env, got)
		}
	}
}

// TestTokensOfOthers: the token is a file that this user alone may open; a link or a pipe in its place is none.
func TestTokensOfOthers(t *testing.T) {
	t.Parallel()

	file := write(t, "opencode")
	for name, tt := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"a link": {func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("x"), 0o600), os.Symlink(path+"2", path))
		}, "ELOOP"},
		"a pipe": {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "chmod 600"},
		"a file for all": {func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, 0o644))
		}, "chmod 600"},
		"nothing": {func(string) error { return nil }, "no such file"},
		"its own": {func(path string) error { return os.WriteFile(path, []byte("x\n"), 0o600) }, "allowed"},
	} {
		dir := place(t)
		socket, token := filepath.Join(dir, "s"), filepath.Join(dir, "grapnel", "token")
		l := listen(t, socket, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1<<16))
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
			_ = conn.Close()
		})
		if err := errors.Join(os.Mkdir(filepath.Dir(token), 0o700), tt.spoil(token)); err != nil {
			t.Fatal(err)
		}
		if got := refusedFor(t, "opencode", file, "HOME="+dir, "XDG_DATA_HOME="+dir, "GRAPNEL_SOCKET="+socket); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
		_ = l.Close()
	}
}

// TestSlowGateways: a call is refused if the answer takes too long as a whole.
func TestSlowGateways(t *testing.T) {
	t.Parallel()

	file := write(t, "opencode")
	for name, answer := range map[string]func(conn net.Conn){
		"silent": func(net.Conn) {},
		"drips": func(conn net.Conn) {
			_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 16000000\r\n\r\n"))
			for err == nil {
				_, err = conn.Write([]byte(" "))
			}
		},
		"breaks off": func(conn net.Conn) {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"))
			_ = conn.Close()
		},
	} {
		socket := filepath.Join(place(t), "s")
		l := listen(t, socket, answer)
		got := refusedFor(t, "opencode", file, "HOME="+filepath.Dir(socket), "GRAPNEL_SOCKET="+socket, "GRAPNEL_TOKEN=secret")
		if !strings.Contains(got, "Grapnel decided nothing: ") || name != "breaks off" && !strings.Contains(got, "has not answered within 60 seconds") {
			t.Errorf("%s: %s", name, got)
		}
		_ = l.Close()
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
