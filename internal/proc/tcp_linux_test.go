package proc

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestParseTCP(t *testing.T) {
	t.Parallel()

	row := func(local, remote string) tcpRow {
		return tcpRow{netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote), 1, 77}
	}
	const rest = " 01 00000000:00000000 00:00000000 00000000  1000        0 77 1 ffff 100 0"
	tests := []struct {
		name, line string
		want       tcpRow
		ok         bool
	}{
		{"IPv4", " 0: 0100007F:1F90 0200007F:0050" + rest, row("127.0.0.1:8080", "127.0.0.2:80"), true},
		{"IPv6", " 0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000" + rest, row("[::1]:8080", "[::]:0"), true},
		{"mapped", " 0: 0000000000000000FFFF00000100007F:0001 0000000000000000FFFF00000100007F:0002" + rest, row("127.0.0.1:1", "127.0.0.1:2"), true},
		{"headline", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode", tcpRow{}, false},
		{"empty", "", tcpRow{}, false},
		{"odd address", " 0: 01007F:1F90 0200007F:0050" + rest, tcpRow{}, false},
		{"odd port", " 0: 0100007F:1F9000 0200007F:0050" + rest, tcpRow{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, ok := parseTCP(tt.line)
			if ok != tt.ok {
				t.Fatalf("ok = %v", ok)
			}
			if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b tcpRow) bool { return a == b })); diff != "" && ok {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

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

func FuzzParseTCP(f *testing.F) {
	f.Add(" 0: 0100007F:1F90 0200007F:0050 01 00000000:00000000 00:00000000 00000000  1000 0 77")
	f.Add(" 0: 0000000000000000FFFF00000100007F:0001 0000000000000000FFFF00000100007F:0002 0A 0 0 0 0 0 1")
	f.Fuzz(func(t *testing.T, line string) {
		if row, ok := parseTCP(line); ok && (!row.local.IsValid() || !row.remote.IsValid()) {
			t.Errorf("%q is read as %v", line, row)
		}
	})
}
