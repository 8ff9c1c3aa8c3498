package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is the user as whom other users' programs run.
const nobody = 65534

// otherProgram is "otheruser MODE ARG...": what another user's program does to a
// gateway and its clients. It runs until its standard input is closed.
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
		if err := os.WriteFile(args[0], []byte("x"), 0o666); err != nil {
			return err
		}
		fmt.Println("ready")
	case "plant": // a directory that all may use, with files
		for _, err := range []error{os.Mkdir(args[0], 0o777), os.Chmod(args[0], 0o777)} {
			if err != nil {
				return err
			}
		}
		for _, name := range args[1:] {
			if err := os.WriteFile(filepath.Join(args[0], name), []byte("planted-secret-of-another-user\n"), 0o600); err != nil {
				return err
			}
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
	in := must(cmd.StdinPipe())(t)
	out := must(cmd.StdoutPipe())(t)
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
	from := must(os.Open("/proc/self/exe"))(t)
	defer from.Close() //nolint:errcheck // it was only read
	// A process that is started meanwhile has the file open for a moment, and then it
	// cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	to := must(os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755))(t)
	must(io.Copy(to, from))(t)
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// openDir makes a directory that others may enter, with a short path.
func openDir(t *testing.T) string {
	t.Helper()
	dir := must(os.MkdirTemp("", "gt"))(t) //nolint:usetesting // those of tests are behind closed ones
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
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
