package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/gateway/client"
	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/peer"
	"github.com/grapnelhq/grapnel/internal/sandbox"
)

// nobody is the user as whom other users' programs run.
const nobody = 65534

// otherProgram is "otheruser MODE ARG...": what another user's program does to a
// gateway and to those who call it. It ends with its standard input.
func otherProgram() {
	if err := otherUser(os.Args[1], os.Args[2:]); err != nil {
		fmt.Println("failed:", err)
	}
}

func otherUser(mode string, args []string) error {
	switch mode {
	case "listen": // at NETWORK ADDRESS, and print all that comes
		l, err := net.Listen(args[0], args[1]) //nolint:noctx // it ends with its input
		if err != nil {
			return err
		}
		fmt.Println("ready")
		go steal(l)
	case "relay": // from the address ARG to that of the real gateway
		l, err := net.Listen("tcp", args[0]) //nolint:noctx // it ends with its input
		if err != nil {
			return err
		}
		fmt.Println("ready")
		go relay(l, args[1])
	case "lock": // a file or directory
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only locked
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return err
		}
		fmt.Println("ready")
	case "make": // a file, for all to read and write
		if err := os.WriteFile(args[0], []byte("x"), 0o666); err != nil { //nolint:gosec // the attack
			return err
		}
		fmt.Println("ready")
	case "dial": // a socket
		conn, err := net.Dial("unix", args[0]) //nolint:noctx // it answers or not
		if err != nil {
			return err
		}
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		answer, _ := io.ReadAll(conn)
		fmt.Printf("ready %q\n", answer)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// steal prints what callers send, and answers as a gateway would, but for the proof.
func steal(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			r := bufio.NewReader(conn)
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				fmt.Printf("stolen %q\n", line)
				if line == "\r\n" {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n"+strings.Repeat("a", 64))
				}
			}
		}()
	}
}

// relay passes everything on to the real gateway and back, and prints it.
func relay(l net.Listener, to string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		real, err := net.Dial("tcp", to) //nolint:noctx // it ends with its input
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(conn, real) }()
		go func() {
			r := bufio.NewReader(conn)
			for {
				line, err := r.ReadString('\n')
				fmt.Printf("stolen %q\n", line)
				if _, bad := io.WriteString(real, line); err != nil || bad != nil {
					return
				}
			}
		}()
	}
}

// other is a process of another user.
type other struct {
	in   io.Closer
	out  *tail
	wait func() error
}

// asOther runs otherProgram as nobody, if this is root, and waits until it is ready
// or has failed.
func asOther(t *testing.T, mode string, args ...string) *other {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), otherBinary(t))
	cmd.Args = append([]string{"otheruser", mode}, args...)
	cmd.Dir, cmd.Env = "/", []string{"GORACE=" + raceOptions, "GOCOVERDIR=" + os.TempDir()}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &other{in: in, out: newTail(out), wait: cmd.Wait}
	t.Cleanup(func() { _ = in.Close() })
	o.out.until(t, "\n")
	return o
}

// end ends it, and returns all that it printed.
func (o *other) end(t *testing.T) string {
	t.Helper()
	_ = o.in.Close()
	text := o.out.until(t, "")
	_ = o.wait()
	return text
}

// otherBinary is this program at a place where nobody may start it.
func otherBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(openDir(t), "otheruser")
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()                                           //nolint:errcheck // it was only read
	// A process that is started meanwhile has the file open for a moment, and then it
	// cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // others start it
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(to, from); err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// openDir makes a directory that others may enter, with a short path.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // those of tests are behind closed ones
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others enter it
		t.Fatal(err)
	}
	return dir
}

// needRoot skips what needs a second user.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
}

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
	if err := os.WriteFile(config, []byte("version: 1\nplugins: [{name: stranger, command: ./stranger, unsafe_path: true}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = serveIn(t, dir, append([]string{"--config", config}, args...)...)
	secret, err := readSecret(filepath.Join(dir, ".local", "share", "grapnel", madeSecret))
	if err != nil {
		t.Fatal(err)
	}
	return s, secret
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
		free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // its port is what is wanted
		if err != nil {
			t.Fatal(err)
		}
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
		"others may write it": func() error { return os.Chmod(n.path, 0o606) }, //nolint:gosec // the attack
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
	secret, err := readSecret(filepath.Join(dir, ".local", "share", "grapnel", madeSecret))
	if err != nil {
		t.Fatal(err)
	}
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
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was only listened at
	for _, args := range [][]string{{"status"}, {"status", "--socket", socket}} {
		code, _, errs := grapnelIn(t, dir, args...)
		if code != exitUnable || !strings.Contains(errs, fmt.Sprintf("process %d listens there", os.Getpid())) {
			t.Errorf("%v: %d %s", args, code, errs)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
			t.Errorf("%v: it got %q, %v", args, got, err)
		}
	}
	s.end(t, syscall.SIGTERM)
}

// TestReadProof: answers that a gateway does not give are not proofs, however long.
func TestReadProof(t *testing.T) {
	t.Parallel()

	const proof = "abc"
	for name, tt := range map[string]struct {
		answer string
		good   bool
	}{
		"a proof":              {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + proof, true},
		"more behind it":       {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + proof + "HTTP/1.1 200 OK\r\n\r\n", false},
		"the connection's end": {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + proof, false},
		"no length":            {"HTTP/1.0 200 OK\r\n\r\n" + proof, false},
		"another status":       {"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 3\r\n\r\n" + proof, false},
		"cut off":              {"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + proof, false},
		"headers without end":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20), false},
		"a body without end":   {"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", 1<<20), false},
		"not HTTP":             {"SSH-2.0-OpenSSH\r\n", false},
		"nothing":              {"", false},
	} {
		r := strings.NewReader(tt.answer)
		got, err := readProof(r)
		if (err == nil) != tt.good || tt.good && string(got) != proof {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if read := len(tt.answer) - r.Len(); read > maxProof {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}

// TestSocketForAnotherUser: the socket takes nobody else's connection, also where its
// mode would let them in.
func TestSocketForAnotherUser(t *testing.T) {
	t.Parallel()
	needRoot(t)

	dir, shared := t.TempDir(), openDir(t)
	socket := filepath.Join(shared, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	if got := asOther(t, "dial", socket).end(t); !strings.Contains(got, "permission denied") {
		t.Errorf("by its mode: %s", got)
	}
	if err := os.Chmod(socket, 0o666); err != nil { //nolint:gosec // the attack
		t.Fatal(err)
	}
	if got := asOther(t, "dial", socket).end(t); got != "ready \"\"\n" {
		t.Errorf("with an open mode: %s", got)
	}
	s.dial(t, "unix:"+socket).ask(t, "workspace/list", nil)
	s.end(t, syscall.SIGTERM)
}

// TestSocketWithoutToken: whoever runs as the gateway's user reaches its socket, and
// gets no further without the token.
func TestSocketWithoutToken(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "g.sock")
	s := serveIn(t, dir, "--socket", socket)
	said := s.errs.until(t, "callers need a token")
	if file := filepath.Join(dir, ".local", "share", "grapnel", madeSecret); !strings.Contains(said, file) {
		t.Errorf("it does not name %s: %s", file, said)
	}
	_, err := client.Dial(t.Context(), "unix:"+socket, client.Options{})
	if !client.HasCode(err, rpc.CodeUnauthorized) {
		t.Errorf("without a token: %v", err)
	}
	for _, args := range [][]string{{"status"}, {"status", "--socket", socket}} {
		if code, _, errs := grapnelIn(t, dir, args...); code != exitOK {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	code, _, errs := grapnelIn(t, t.TempDir(), "status", "--socket", socket) // another home
	if code != exitNo || !strings.Contains(errs, "--token-file") || !strings.Contains(errs, "the file that serve names") {
		t.Errorf("without the note: %d %s", code, errs)
	}
	s.end(t, syscall.SIGTERM)
}

// TestSocketForPlugins: a plugin runs as the gateway's user and reaches its socket in
// every tier that does not deny it. It gets no further without the token, and with a
// sandbox it can read neither that nor the note.
func TestSocketForPlugins(t *testing.T) {
	t.Parallel()

	for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1} {
		t.Run(tier.String(), func(t *testing.T) {
			t.Parallel()
			if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil && tier > sandbox.T0 {
				t.Skip(err)
			}
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			socket, config := filepath.Join(dir, "g.sock"), filepath.Join(dir, "grapnel.yaml")
			data := filepath.Join(dir, ".local", "share", "grapnel")
			text := fmt.Sprintf("version: 1\nplugins:\n  - name: bad\n    command: ./badplugin\n    sandbox: %s\n    unsafe_path: true\n"+
				"    args: [reach, call=%s, read=%s/token, read=%s/tokens.yaml, 'glob=%s/grapnel/gateway-*']\n"+
				"    grants: {contribute: ['*'], sections: ['*']}\n    limits: {start: 30s}\n", tier, socket, data, data, dir)
			for _, err := range []error{os.Symlink(self, filepath.Join(dir, "badplugin")), os.WriteFile(config, []byte(text), 0o600)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s := serveIn(t, dir, "--config", config, "--socket", socket)
			s.errs.until(t, "msg=plugin plugin=bad state=ready")
			c := s.dial(t, "unix:"+socket)
			c.ask(t, "workspace/create", object{"id": "w", "name": "W"})
			var done struct {
				Prompt struct {
					Text string `json:"full_text"`
				} `json:"prompt"`
			}
			if err := json.Unmarshal(c.ask(t, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": "1"}}), &done); err != nil {
				t.Fatal(err)
			}
			_, compiled, _ := strings.Cut(done.Prompt.Text, "call: ")
			if compiled == "" || strings.Contains(compiled, `"result"`) {
				t.Errorf("without a token: %s", compiled)
			}
			secret, err := readSecret(filepath.Join(data, madeSecret))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(compiled, secret); got != (tier == sandbox.T0) {
				t.Errorf("it can read the token: %t\n%s", got, compiled)
			}
			if got := strings.Contains(compiled, "started_at"); got != (tier == sandbox.T0) {
				t.Errorf("it can read the note: %t\n%s", got, compiled)
			}
			s.end(t, syscall.SIGTERM)
		})
	}
}

// TestSocketLocks: another user cannot keep a gateway from opening its socket by a
// lock, and a lock that cannot be had is an error with the file and its holder.
func TestSocketLocks(t *testing.T) {
	t.Parallel()

	t.Run("the directory, by another user", func(t *testing.T) {
		t.Parallel()
		needRoot(t)

		shared := openDir(t)
		holder := asOther(t, "lock", shared)
		s := serveIn(t, t.TempDir(), "--socket", filepath.Join(shared, "g.sock"))
		s.end(t, syscall.SIGTERM)
		if got := holder.end(t); got != "ready\n" {
			t.Errorf("it did not hold the lock: %s", got)
		}
		if left, err := os.ReadDir(shared); err != nil || len(left) != 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("the lock file, made by another user", func(t *testing.T) {
		t.Parallel()
		needRoot(t)

		shared := openDir(t)
		if err := os.Chmod(shared, 0o777|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
		lock := filepath.Join(shared, ".g.sock.lock")
		asOther(t, "make", lock).end(t)
		code, _, errs := grapnelIn(t, t.TempDir(), "serve", "--socket", filepath.Join(shared, "g.sock"))
		if code != exitUnable || !strings.Contains(errs, lock) {
			t.Errorf("%d %s", code, errs)
		}
	})
	t.Run("the lock file, by a program that hangs", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		socket := filepath.Join(dir, "g.sock")
		unlock, err := lockSocket(t.Context(), socket)
		if err != nil {
			t.Fatal(err)
		}
		code, _, errs := grapnelIn(t, dir, "serve", "--socket", socket)
		if code != exitUnable || !strings.Contains(errs, ".g.sock.lock (process "+strconv.Itoa(os.Getpid())+")") || strings.Count(errs, "grapnel: ") != 1 {
			t.Errorf("%d %s", code, errs)
		}
		unlock()
		serveIn(t, dir, "--socket", socket).end(t, syscall.SIGTERM)
	})
	t.Run("a pipe and a link in its place", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		lock := filepath.Join(dir, ".g.sock.lock")
		for _, make := range []func() error{
			func() error { return unix.Mkfifo(lock, 0o600) },
			func() error { return os.Symlink(filepath.Join(dir, "elsewhere"), lock) },
		} {
			if err := make(); err != nil {
				t.Fatal(err)
			}
			if code, _, errs := grapnelIn(t, dir, "serve", "--socket", filepath.Join(dir, "g.sock")); code != exitUnable || !strings.Contains(errs, lock) {
				t.Errorf("%d %s", code, errs)
			}
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
			t.Error("the link was followed")
		}
	})
}

// TestTokenInTheClear: a token is not sent over a network unencrypted.
func TestTokenInTheClear(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://192.0.2.1:7433", "ws://192.0.2.1:7433", "http://gateway.example:7433"} {
		if code, _, errs := grapnelIn(t, dir, "status", "--url", url, "--token-file", file); code != exitUsage || !strings.Contains(errs, "use https://") {
			t.Errorf("%s: %d %s", url, code, errs)
		}
	}
}
