package proc

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listening makes a process value whose plugin is this very process, and a
// socket on which it listens.
func listening(tb testing.TB) (p *Process, path string) {
	tb.Helper()

	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "unix", path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	p = &Process{child: &child{family: newFamily(os.Getpid(), "mark")}}
	return p, path
}

// TestDialWaits: a socket that is not there, and one on which nobody listens yet,
// are waited for.
func TestDialWaits(t *testing.T) {
	t.Parallel()

	p, path := listening(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	bound := path + "2"
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: bound}); err != nil { // without listening
		t.Fatal(err)
	}
	for _, addr := range []string{bound, path + "3"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := p.dial(ctx, handshake{network: "unix", address: addr})
		cancel()
		if !errors.Is(err, errGaveUp) {
			t.Errorf("%s: error %v, want %v", addr, err, errGaveUp)
		}
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	conn, err := p.dial(t.Context(), handshake{network: "unix", address: bound})
	if err != nil {
		t.Fatal(err)
	}
	closeQuietly(conn)
}

func BenchmarkDial(b *testing.B) {
	p, path := listening(b)
	for b.Loop() {
		conn, err := p.dial(b.Context(), handshake{network: "unix", address: path})
		if err != nil {
			b.Fatal(err)
		}
		closeQuietly(conn)
	}
}
