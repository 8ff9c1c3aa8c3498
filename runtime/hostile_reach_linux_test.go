package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/sdk"
)

// reachAttacks reach for what is not the plugin's, and report "ok" or "denied".
func reachAttacks() map[string]func(*hostile) error {
	all := map[string]func(p *hostile) error{
		"reach-file":        func(p *hostile) error { _, err := os.ReadFile(p.Arg("canary") + "/secret"); return err },
		"reach-directory":   func(p *hostile) error { _, err := os.ReadDir(p.Arg("canary")); return err },
		"reach-by-link":     func(p *hostile) error { return readByLink(p.Arg("canary") + "/secret") },
		"reach-write":       func(p *hostile) error { return os.WriteFile(p.Arg("loot")+"/written", []byte("x"), 0o600) },
		"reach-environ":     func(p *hostile) error { _, err := os.ReadFile(p.proc("environ")); return err },
		"reach-descriptors": func(p *hostile) error { _, err := os.ReadDir(p.proc("fd")); return err },
		"reach-memory":      func(p *hostile) error { return openedFile(p.proc("mem"), os.O_RDWR) },
		"reach-oom-score":   func(p *hostile) error { return openedFile(p.proc("oom_score_adj"), os.O_WRONLY) },
		"reach-trace":       func(p *hostile) error { return trace(p.host()) },
		"reach-signal":      func(p *hostile) error { return unix.Kill(p.host(), 0) },
		"reach-limits":      func(p *hostile) error { return unix.Prlimit(p.host(), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) },
		"reach-tcp":         func(p *hostile) error { return connected("tcp", p.Arg("tcp")) },
		"reach-abstract":    func(p *hostile) error { return connected("unix", p.Arg("abstract")) },
		"reach-socket":      func(p *hostile) error { return connected("unix", p.Arg("canary")+"/socket") },
		"reach-neighbours":  func(*hostile) error { return callNeighbours() },
		"reach-port": func(*hostile) error {
			l, err := listenAt("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			return l.Close()
		},
	}
	modes := map[string]func(*hostile) error{}
	for name, try := range all {
		modes[name] = func(p *hostile) error {
			return p.serveAttack(func(context.Context, *sdk.Call) { p.attempt(try(p)) })
		}
	}
	return modes
}

// host is the host's process.
func (p *hostile) host() int {
	pid, err := strconv.Atoi(p.Arg("host"))
	if err != nil {
		return -1
	}
	return pid
}

func (p *hostile) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", p.host(), name) }

func openedFile(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func readByLink(target string) error {
	link := filepath.Join(filepath.Dir(socketPath()), "link")
	if err := os.Symlink(target, link); err != nil {
		return err
	}
	_, err := os.ReadFile(link)
	return err
}

// trace attaches to a process and lets go. A tracer that does not would stop the process
// for good at its next signal.
func trace(pid int) error {
	runtime.LockOSThread() // a thread traces
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(pid); err != nil {
		return err
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(pid)
}

func connected(network, addr string) error {
	conn, err := dialled(network, addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

func dialled(network, addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), network, addr)
}

// callNeighbours speaks with the plugins whose sockets it finds, as a host does.
func callNeighbours() error {
	own := filepath.Dir(socketPath())
	sockets, err := filepath.Glob(filepath.Join(filepath.Dir(own), "*", "plugin*"))
	if err != nil {
		return err
	}
	for _, path := range sockets {
		if filepath.Dir(path) == own {
			continue
		}
		if greets(path) == nil {
			return nil
		}
	}
	return errors.New("no plugin speaks with a stranger")
}

// greets reports whether a server of HTTP/2 answers a stranger.
func greets(path string) error {
	conn, err := dialled("unix", path)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		return err
	}
	// Anybody is greeted with settings; the answer to ours comes only to the host.
	return ackOf(conn)
}

// ackOf reads frames until our settings are acknowledged.
func ackOf(r io.Reader) error {
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		if head[3] == frameSettings && head[4]&1 != 0 {
			return nil
		}
		if err := skipPayload(r, head); err != nil {
			return err
		}
	}
}

// directoryAttacks leave a private directory behind that is hard to remove, or that
// leads whoever removes it elsewhere.
func directoryAttacks() map[string]func(*hostile) error {
	own := func(name string) string { return filepath.Join(filepath.Dir(socketPath()), name) }
	all := map[string]func(p *hostile) error{
		"dir-no-rights": func(*hostile) error {
			return errors.Join(os.MkdirAll(own("a/b"), 0o700), os.Chmod(own("a/b"), 0), os.Chmod(own("a"), 0), os.Chmod(own("."), 0))
		},
		"dir-full":       func(*hostile) error { return manyFiles(own("f"), 3000) },
		"dir-odd-names":  func(*hostile) error { return oddNames(own(".")) },
		"dir-pipes":      func(*hostile) error { return errors.Join(unix.Mkfifo(own("p"), 0o600), unix.Mkfifo(own("q"), 0)) },
		"dir-links":      func(p *hostile) error { return manyLinks(own("."), p.Arg("canary")) },
		"dir-hard-links": func(p *hostile) error { return ignored(os.Link(p.Arg("canary")+"/secret", own("hard"))) },
		"dir-sockets":    func(*hostile) error { return manySockets(own("s")) },
		"dir-deep":       func(*hostile) error { return deep(own("d"), 700) },
		"dir-socket-swapped": func(p *hostile) error {
			sockets, err := filepath.Glob(own("plugin*"))
			for _, path := range sockets {
				err = errors.Join(err, os.Remove(path), os.Symlink(p.Arg("canary")+"/socket", path))
			}
			return err
		},
		"dir-removed": func(*hostile) error { return ignored(os.RemoveAll(own("."))) },
		"dir-swapped": func(p *hostile) error {
			return ignored(errors.Join(os.Rename(own("."), own(".")+".away"), os.Symlink(p.Arg("canary"), own("."))))
		},
		"dir-mounted": func(*hostile) error {
			return ignored(errors.Join(os.Mkdir(own("m"), 0o700), unix.Mount("tmpfs", own("m"), "tmpfs", 0, "size=1m")))
		},
		"dir-locked": func(p *hostile) error { return p.Apart("hostile", "dir-lock").Start() },
		"dir-raced":  func(p *hostile) error { return p.Apart("hostile", "dir-race").Start() },
	}
	modes := map[string]func(*hostile) error{
		"dir-lock": func(p *hostile) error { return errors.Join(lock(own(".")), p.Block()) },
		"dir-race": func(p *hostile) error { return race(own("raced"), p.Arg("canary")) },
	}
	for name, do := range all {
		modes[name] = attack(do)
	}
	return modes
}

// ignored is for attacks that the sandbox, or the lack of a right, prevents.
func ignored(error) error { return nil }

func manyFiles(dir string, n int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0); err != nil {
			return err
		}
	}
	return nil
}

func oddNames(dir string) error {
	for _, name := range []string{"a\nb", "\x1b[2J", "\xff\xfe", "-rf", "*", strings.Repeat("n", 255), "...", " "} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func manyLinks(dir, canary string) error {
	sub := filepath.Join(dir, "sub")
	return errors.Join(os.Symlink(canary, filepath.Join(dir, "l")), os.Symlink("/", filepath.Join(dir, "root")), os.Symlink("l2", filepath.Join(dir, "l2")),
		os.Mkdir(sub, 0o700), os.Symlink(canary, filepath.Join(sub, "l")), os.Symlink(canary+"/secret", filepath.Join(sub, "file")), os.Chmod(sub, 0))
}

func manySockets(prefix string) error {
	for i := range 50 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("%s%d", prefix, i)}); err != nil {
			return err
		}
	}
	return nil
}

// deep makes directories whose path is longer than any that the system takes.
func deep(dir string, levels int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at, "longer", 0o700)
		}
		if err != nil {
			break
		}
		var next int
		next, err = unix.Openat(at, "longer", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		at = next
	}
	return errors.Join(err, unix.Close(at))
}

// lock takes the lock by which hosts know directories that are in use.
func lock(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return ignored(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
}

// race swaps a directory for a link to the canary, back and forth.
func race(dir, canary string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		_ = os.MkdirAll(dir+"/x/y", 0o700)
		_ = os.Rename(dir, dir+".away")
		_ = os.Symlink(canary, dir)
		_ = os.Remove(dir)
		_ = os.Rename(dir+".away", dir)
	}
	return nil
}
