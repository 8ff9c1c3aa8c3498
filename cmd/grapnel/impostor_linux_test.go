package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc/peer"
)

// TestTokenForAnotherUsersPort kills a gateway; another user's program takes its port.
// No command sends the token there, whoever named the address.
func TestTokenForAnotherUsersPort(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	s, secret := serveStranger(t, dir)
	s.end(t, syscall.SIGKILL)
	thief := asOther(t, "listen", "tcp", strings.TrimPrefix(s.target(), "http://"))
	file := filepath.Join(dir, ".local", "share", "grapnel", madeSecret)
	for _, args := range [][]string{
		{"status"},
		{"status", "--token-file", file},
		{"status", "--url", s.target()},
		{"status", "--url", s.target(), "--token-file", file},
		{"status", "--url", strings.Replace(s.target(), "127.0.0.1", "localhost", 1), "--token-file", file},
		{"config", "reload"},
		{"docs", "export", filepath.Join(dir, "out"), "--url", wsOf(s.target()), "--token-file", file},
	} {
		if code, out, errs := grapnelIn(t, dir, args...); code != exitUnable || out != "" || !strings.Contains(errs, "process "+strconv.Itoa(s.cmd.Process.Pid)) {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
	}
	if got := thief.end(t); !strings.HasPrefix(got, "ready") || strings.Contains(got, secret) {
		t.Errorf("the other program got %s", got)
	}
}

// serveStranger starts a gateway that needs a token and has made one.
func serveStranger(t *testing.T, dir string, args ...string) (s *served, secret string) {
	t.Helper()
	config := filepath.Join(dir, "grapnel.yaml")
	put(t, config, "version: 1\nplugins: [{name: stranger, command: ./stranger, unsafe_path: true}]\n")
	s = serveIn(t, dir, append([]string{"--config", config}, args...)...)
	return s, must(readSecret(filepath.Join(dir, ".local", "share", "grapnel", madeSecret)))(t)
}

// TestTokenForAnotherUsersPortBehindALivingNote: the process of the note lives, and
// another program has the port: the process of the test stands for one that has the
// number of a gateway, started at the same tick. The proof tells them apart.
func TestTokenForAnotherUsersPortBehindALivingNote(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	s, secret := serveStranger(t, dir)
	n := noteOf(t, dir)
	real := strings.TrimPrefix(s.target(), "http://")
	for name, mode := range map[string][]string{
		"a program that answers": {"listen", "tcp", "127.0.0.1:0"},
		"one that passes it on":  {"relay", "127.0.0.1:0"},
	} {
		free := must(net.Listen("tcp", "127.0.0.1:0"))(t) //nolint:noctx // its port is what is wanted
		at := free.Addr().String()
		_ = free.Close()
		mode[len(mode)-1] = at
		if mode[0] == "relay" {
			mode = append(mode, real)
		}
		thief := asOther(t, mode[0], mode[1:]...)
		n.URL = "http://" + at
		writeNote(t, n)
		if code, out, errs := grapnelIn(t, dir, "status"); code != exitUnable || !strings.Contains(errs, "no token was sent") {
			t.Errorf("%s: %d %s%s", name, code, out, errs)
		}
		if got := thief.end(t); !strings.Contains(got, "stolen") || strings.Contains(got, secret) {
			t.Errorf("%s got %s", name, got)
		}
	}
	n.URL = s.target()
	writeNote(t, n)
	if code, _, errs := grapnelIn(t, dir, "status"); code != exitOK {
		t.Errorf("the gateway itself: %d %s", code, errs)
	}
	n.Secret = nil // an empty one proves nothing
	writeNote(t, n)
	if code, _, errs := grapnelIn(t, dir, "status"); code != exitUnable || !strings.Contains(errs, "no gateway of yours runs") {
		t.Errorf("a note without a secret: %d %s", code, errs)
	}
	n.Secret, n.Started = []byte("x"), peer.Started(1)
	writeNote(t, n)
	if code, _, errs := grapnelIn(t, dir, "status"); code != exitUnable || !strings.Contains(errs, "has ended without") {
		t.Errorf("a note of an earlier process with this number: %d %s", code, errs)
	}
	s.end(t, syscall.SIGTERM)
}

// noteOf reads the only note of a home.
func noteOf(t *testing.T, dir string) *note {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "grapnel", "gateway-*.json"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("notes: %v, %v", paths, err)
	}
	n := readNote(paths[0])
	if n == nil {
		t.Fatalf("%s is not a note", paths[0])
	}
	return n
}

// writeNote puts another text into a note.
func writeNote(t *testing.T, n *note) {
	t.Helper()
	data, err := json.Marshal(n)
	if err == nil {
		err = os.WriteFile(n.path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestNotesThatOthersWrote: a note that another user has written, or could have, is
// not one. A pipe in its place makes nobody wait.
func TestNotesThatOthersWrote(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	s, _ := serveStranger(t, dir)
	n := noteOf(t, dir)
	for name, spoil := range map[string]func() error{
		"others may write it": func() error { return os.Chmod(n.path, 0o606) },
		"a pipe":              func() error { return unix.Mkfifo(n.path, 0o600) },
		"a link": func() error {
			writeNote(t, n)
			return os.Rename(n.path, n.path+".moved")
		},
	} {
		if name != "others may write it" {
			_ = os.Remove(n.path)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if name == "a link" {
			if err := os.Symlink(n.path+".moved", n.path); err != nil {
				t.Fatal(err)
			}
		}
		if code, _, errs := grapnelIn(t, dir, "status"); code != exitUnable || !strings.Contains(errs, "no gateway of yours runs") {
			t.Errorf("%s: %d %s", name, code, errs)
		}
		_ = os.Remove(n.path)
		writeNote(t, n)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(n.path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := grapnelIn(t, dir, "status"); code != exitUnable {
			t.Errorf("another user's: %d %s", code, errs)
		}
	}
	s.end(t, syscall.SIGTERM)
}

// TestTokenForAnotherUsersSocket: a gateway has ended, and another user listens at the
// path of its socket in a directory where everybody may. Nothing is sent there.
func TestTokenForAnotherUsersSocket(t *testing.T) {
	t.Parallel()
	needRoot(t)

	dir, shared := t.TempDir(), openDir(t)
	if err := os.Chmod(shared, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(shared, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	secret := must(readSecret(filepath.Join(dir, ".local", "share", "grapnel", madeSecret)))(t)
	n := noteOf(t, dir)
	s.end(t, syscall.SIGKILL)
	if err := os.Remove(socket); err != nil { // as the end of a gateway does
		t.Fatal(err)
	}
	thief := asOther(t, "listen", "unix", socket)
	file := filepath.Join(dir, ".local", "share", "grapnel", madeSecret)
	if code, _, errs := grapnelIn(t, dir, "status"); code != exitUnable || !strings.Contains(errs, "has ended without") {
		t.Errorf("by the note: %d %s", code, errs)
	}
	n.PID, n.Started = os.Getpid(), peer.Started(os.Getpid())
	writeNote(t, n)
	for _, args := range [][]string{{"status"}, {"status", "--socket", socket, "--token-file", file}} {
		if code, _, errs := grapnelIn(t, dir, args...); code != exitUnable || !strings.Contains(errs, "user 65534 is at the other end") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	if got := thief.end(t); got != "ready\n" {
		t.Errorf("the other program got %s of %s", got, secret)
	}
}

// TestTokenForAnotherProcessAtTheSocket: a program of the same user, such as a plugin
// that may write to the directory, puts a socket of its own in the gateway's place.
func TestTokenForAnotherProcessAtTheSocket(t *testing.T) {
	t.Parallel()

	dir := openDir(t)
	socket := filepath.Join(dir, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	if err := os.Rename(socket, socket+".moved"); err != nil {
		t.Fatal(err)
	}
	l := must((&net.ListenConfig{}).Listen(t.Context(), "unix", socket))(t)
	defer l.Close() //nolint:errcheck // it was only listened at
	for _, args := range [][]string{{"status"}, {"status", "--socket", socket}} {
		code, _, errs := grapnelIn(t, dir, args...)
		if code != exitUnable || !strings.Contains(errs, fmt.Sprintf("process %d listens there", os.Getpid())) {
			t.Errorf("%v: %d %s", args, code, errs)
		}
		conn := must(l.Accept())(t)
		if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
			t.Errorf("%v: it got %q, %v", args, got, err)
		}
	}
	s.end(t, syscall.SIGTERM)
}

// TestTokenInTheClear: a token is not sent over a network unencrypted.
func TestTokenInTheClear(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	put(t, file, "secret")
	for _, url := range []string{"http://192.0.2.1:7433", "ws://192.0.2.1:7433", "http://gateway.example:7433"} {
		if code, _, errs := grapnelIn(t, dir, "status", "--url", url, "--token-file", file); code != exitUsage || !strings.Contains(errs, "use https://") {
			t.Errorf("%s: %d %s", url, code, errs)
		}
	}
}
