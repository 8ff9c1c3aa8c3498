//go:build linux || darwin

package peer_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/grapnelhq/grapnel/internal/proc/peer"
)

// TestOf: both ends of a socket see the process at the other one.
func TestOf(t *testing.T) {
	t.Parallel()

	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was only listened at
	client, err := (&net.Dialer{}).DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // nothing was said
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // nothing was said
	for name, conn := range map[string]net.Conn{"client": client, "server": server} {
		if c, err := peer.Of(conn); err != nil || c.PID != os.Getpid() || c.UID != os.Geteuid() {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if err := peer.Check(conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := peer.Check(&net.TCPConn{}); err == nil {
		t.Error("a TCP connection is not a unix socket")
	}
}

// TestTrusted: another user is not.
func TestTrusted(t *testing.T) {
	t.Parallel()

	if !peer.Trusted(os.Geteuid()) || !peer.Trusted(0) || peer.Trusted(os.Geteuid()+1) {
		t.Error("only this user and root are trusted")
	}
}

// TestStarted: a process that has ended has no start, and two have different ones
// or numbers.
func TestStarted(t *testing.T) {
	t.Parallel()

	if own := peer.Started(os.Getpid()); own == "" || own != peer.Started(os.Getpid()) {
		t.Errorf("this process started at %q", own)
	}
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got := peer.Started(cmd.Process.Pid); got != "" {
		t.Errorf("a process that has ended started at %q", got)
	}
}
