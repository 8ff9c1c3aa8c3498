package proc

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestConnectionThatAnotherTook: the address was the plugin's when it was looked
// at, and somebody else's when the connection was made.
func TestConnectionThatAnotherTook(t *testing.T) {
	t.Parallel()

	plugin := exec.CommandContext(t.Context(), "/bin/cat")
	in, err := plugin.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), plugin.Wait() }()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		t.Run(at, func(t *testing.T) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
			if err != nil {
				t.Skip("no such address here:", err)
			}
			defer closeQuietly(l)
			addr := netip.MustParseAddrPort(l.Addr().String())
			if addr.Addr().IsUnspecified() {
				addr = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), addr.Port())
			}
			h := handshake{network: "tcp", address: addr.String()}
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.address)
			if err != nil {
				t.Fatal(err)
			}
			defer closeQuietly(conn)
			ours, theirs := familyOf(os.Getpid()), familyOf(plugin.Process.Pid)

			// A connection that nobody has accepted says nothing.
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := ours.checkPeer(ctx, conn, h); err != errGaveUp { //nolint:errorlint // this very one
				t.Errorf("before it was accepted: %v", err)
			}
			other, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer closeQuietly(other)
			if err := ours.checkPeer(t.Context(), conn, h); err != nil {
				t.Errorf("its own: %v", err)
			}
			if err := theirs.checkPeer(t.Context(), conn, h); phases.CodeOf(err) != phases.CauseUnsafePath {
				t.Errorf("another's: %v", err)
			}
			if err := ours.checkListener(h); err != nil {
				t.Errorf("its own listener: %v", err)
			}
			if err := theirs.checkListener(h); phases.CodeOf(err) != phases.CauseUnsafePath {
				t.Errorf("another's listener: %v", err)
			}
		})
	}
}

// familyOf makes a process value whose plugin is a process.
func familyOf(pid int) *Process {
	return &Process{spec: Spec{Name: "tester"}, child: &child{family: newFamily(pid, "mark")}}
}
