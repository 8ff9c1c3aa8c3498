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

func TestCheckedSocketStaysTheSame(t *testing.T) {
	t.Parallel()

	p, path := listening(t)
	dial, release, err := p.checkPeer(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	// Another one takes its place; the address still leads to the first.
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	other, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	conn, err := net.Dial("unix", dial) //nolint:noctx // it listens
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	socket, ok := other.(*net.UnixListener)
	if !ok {
		t.Fatalf("it is a %T", other)
	}
	if err := socket.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the other socket was dialled: %v", err)
	}
	release()
	if _, err := net.Dial("unix", dial); err == nil { //nolint:noctx // nobody listens
		t.Error("the socket is still held after its release")
	}
}

func TestCheckPeerWaits(t *testing.T) {
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
		_, _, err := p.checkPeer(ctx, addr)
		cancel()
		if !errors.Is(err, errGaveUp) {
			t.Errorf("%s: error %v, want %v", addr, err, errGaveUp)
		}
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	_, release, err := p.checkPeer(t.Context(), bound)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestFamilyHas(t *testing.T) {
	t.Parallel()

	f := newFamily(os.Getpid(), "no such mark")
	if !f.has(os.Getpid()) || f.has(1) || f.has(0) || f.has(-1) {
		t.Error("only the root of a family without children is in it")
	}
}

func BenchmarkCheckPeer(b *testing.B) {
	p, path := listening(b)
	for b.Loop() {
		_, release, err := p.checkPeer(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
