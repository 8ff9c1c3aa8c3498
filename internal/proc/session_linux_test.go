package proc_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
)

// openSessionOf is openSession for a spec.
func openSessionOf(t *testing.T, b *testBench, spec proc.Spec) (*proc.Process, *wire.Session) {
	t.Helper()

	spec.Grace = 12 * time.Second // the race detector holds a process up as it ends
	p := b.start(t, spec)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := wire.Open(ctx, p.Conn(), wire.HostOptions{Incarnation: 1, Instance: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if got := s.Description(); got.Version != "1.2.3" {
		t.Errorf("description = %+v", got)
	}
	return p, s
}

func TestSessionOverTLS(t *testing.T) {
	b := setup(t)
	spec := b.spec("session")
	spec.MutualTLS = true
	p, s := openSessionOf(t, b, spec)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
	// Without a certificate one is not let in.
	sockets, err := filepath.Glob(filepath.Join(b.dir, "grapnel-*", "plugin[0-9]*"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %q, %v", sockets, err)
	}
	conn, err := wire.Connect(sockets[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if other, err := wire.Open(ctx, conn, wire.HostOptions{Incarnation: 2, Instance: "tester"}); err == nil {
		other.Close()
		t.Error("a connection without a certificate opens a session")
	}
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
	<-s.Done()
}
