package proc_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

// TestServerWithAnotherCertificate: a plugin that does not hold the key of the certificate that it sent is not spoken
// with.
func TestServerWithAnotherCertificate(t *testing.T) {
	b := setup(t)
	s := b.spec("tls")
	s.MutualTLS = true
	_, err := proc.Start(t.Context(), s)
	if got := phases.CodeOf(err); got != phases.CauseSessionReset || !strings.Contains(phases.Whole(err), "unknown authority") {
		t.Errorf("code %q, want session_reset: %v", got, phases.Whole(err))
	}
}

// TestOwnTCPAddress: a plugin may listen on a loopback address, or have a child
// listen there, and may be confined.
func TestOwnTCPAddress(t *testing.T) {
	open := sandbox.Policy{Net: sandbox.Net{All: true}}
	tests := []struct {
		name, mode string
		how        proc.Sandbox
	}{
		{"the plugin", "tcp", proc.Sandbox{}},
		{"its child", "tcp-child", proc.Sandbox{}},
		{"in the sandbox", "tcp", proc.Sandbox{Tier: sandbox.T1, Policy: open}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.how.Tier == sandbox.T1 {
				needT1(t)
			}
			b := setup(t)
			spec := b.spec(tt.mode)
			spec.Sandbox = tt.how
			p, s := openSessionOf(t, b, spec)
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			p.Kill() // it serves nothing that asks it to end
		})
	}
}

// TestAnothersTCPAddress: the host does not connect to an address that is not the
// plugin's, whoever listens there.
func TestAnothersTCPAddress(t *testing.T) {
	b := setup(t)
	var addresses []string
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err)
			continue
		}
		t.Cleanup(func() {
			_ = l.(*net.TCPListener).SetDeadline(time.Now()) //nolint:forcetypeassert // of Listen
			if conn, err := l.Accept(); err == nil {
				_ = conn.Close()
				t.Errorf("the host has connected to %s", l.Addr())
			}
			_ = l.Close()
		})
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, strings.Replace(l.Addr().String(), "[::]:"+port, "127.0.0.1:"+port, 1))
	}
	other := b.start(t, b.spec("tcp"))
	addresses = append(addresses, addressOf(t, other.PID()))
	for _, addr := range addresses {
		_, err := proc.Start(t.Context(), b.spec("line", "1|1|tcp|"+addr+"|grpc|"))
		if phases.CodeOf(err) != phases.CauseUnsafePath || !strings.Contains(phases.Whole(err), "another process listens") {
			t.Errorf("a plugin names %s: %v", addr, phases.Whole(err))
		}
	}
}

// TestTCPAddressThatNobodyServes: no connection is used before the plugin has
// taken it.
func TestTCPAddressThatNobodyServes(t *testing.T) {
	t.Parallel()

	for _, mode := range []string{"tcp-deaf", "nobody"} {
		t.Run(mode, func(t *testing.T) {
			b := setupParallel(t)
			s := b.spec(mode)
			if mode == "nobody" {
				s = b.spec("line", "1|1|tcp|127.0.0.1:1|grpc|")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := proc.Start(ctx, s)
			if phases.CodeOf(err) != phases.CauseStartTimeout || !strings.Contains(phases.Whole(err), "nothing answers on its address") {
				t.Errorf("error %v", phases.Whole(err))
			}
		})
	}
}

// TestEndlessStdio: output over the connection is read, and not kept.
func TestEndlessStdio(t *testing.T) {
	b := setup(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := b.act(t, b.spec("print-on"))
	b.waitLine(t, "done")
	stop(t, p)
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 { // HeapSys never shrinks
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
}

// TestPanicsAreContained: a mistake of the host's that a plugin's output finds costs
// the plugin, and not the host.
func TestPanicsAreContained(t *testing.T) {
	t.Run("in the start", func(t *testing.T) {
		b := setup(t)
		s := b.spec("serve")
		s.Spawned = func(*proc.Process) { panic("oh") }
		_, err := proc.Start(t.Context(), s)
		if phases.CodeOf(err) != phases.CauseInternal || !strings.Contains(phases.Whole(err), "panicked: oh") {
			t.Error(phases.Whole(err))
		}
	})
	for _, mode := range []string{"logs", "print"} {
		t.Run("over its "+mode, func(t *testing.T) {
			b := setup(t)
			s := b.spec(mode)
			s.Redact = func(text string) string {
				if strings.HasPrefix(text, `{"@level":"warn"`) || strings.HasPrefix(text, "late words") {
					panic("oh")
				}
				return text
			}
			p := b.act(t, s)
			<-p.Done()
			if exit := p.Exit(); exit.Asked || exit.Signal != syscall.SIGKILL {
				t.Errorf("exit = %+v", exit)
			}
		})
	}
}

// addressOf returns the address on which a process listens, by the system's
// table: the port is the only one of its kind.
func addressOf(t *testing.T, pid int) string {
	t.Helper()

	sockets := map[string]bool{}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
		sockets[name] = true
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		var port int
		if len(fields) > 9 && fields[3] == "0A" && sockets["socket:["+fields[9]+"]"] {
			if _, err := fmt.Sscanf(fields[1], "0100007F:%X", &port); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatalf("process %d does not listen", pid)
	return ""
}
