package badplugin

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
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/sdk"
)

// reachAttacks reach for what is not the plugin's, and report "ok" or "denied".
func reachAttacks() map[string]func(*Program) error {
	all := map[string]func(p *Program) error{
		"reach-file":        func(p *Program) error { _, err := os.ReadFile(p.arg("canary") + "/secret"); return err },
		"reach-directory":   func(p *Program) error { _, err := os.ReadDir(p.arg("canary")); return err },
		"reach-by-link":     func(p *Program) error { return readByLink(p.arg("canary") + "/secret") },
		"reach-write":       func(p *Program) error { return os.WriteFile(p.arg("loot")+"/written", []byte("x"), 0o600) },
		"reach-environ":     func(p *Program) error { _, err := os.ReadFile(p.proc("environ")); return err },
		"reach-descriptors": func(p *Program) error { _, err := os.ReadDir(p.proc("fd")); return err },
		"reach-memory":      func(p *Program) error { return opened(p.proc("mem"), os.O_RDWR) },
		"reach-oom-score":   func(p *Program) error { return opened(p.proc("oom_score_adj"), os.O_WRONLY) },
		"reach-trace":       func(p *Program) error { return trace(p.host()) },
		"reach-signal":      func(p *Program) error { return unix.Kill(p.host(), 0) },
		"reach-limits":      func(p *Program) error { return unix.Prlimit(p.host(), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) },
		"reach-tcp":         func(p *Program) error { return connected("tcp", p.arg("tcp")) },
		"reach-abstract":    func(p *Program) error { return connected("unix", p.arg("abstract")) },
		"reach-socket":      func(p *Program) error { return connected("unix", p.arg("canary")+"/socket") },
		"reach-neighbours":  func(*Program) error { return callNeighbours() },
		"reach-port": func(*Program) error {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			return l.Close()
		},
	}
	modes := map[string]func(*Program) error{}
	for name, try := range all {
		modes[name] = func(p *Program) error {
			return p.serveAttack(func(context.Context, *sdk.Call) { p.attempt(try(p)) })
		}
	}
	return modes
}

// host is the host's process.
func (p *Program) host() int {
	pid, err := strconv.Atoi(p.arg("host"))
	if err != nil {
		return -1
	}
	return pid
}

func (p *Program) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", p.host(), name) }

func opened(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func readByLink(target string) error {
	link := filepath.Join(filepath.Dir(socket()), "link")
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
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), network, addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// callNeighbours speaks with the plugins whose sockets it finds, as a host does.
func callNeighbours() error {
	own := filepath.Dir(socket())
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
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path)
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
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, r, length); err != nil {
			return err
		}
	}
}
