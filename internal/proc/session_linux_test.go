package proc_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// openSession starts a plugin that speaks the protocol, and opens a session.
func openSession(t *testing.T, b *testBench) (*proc.Process, *wire.Session) {
	t.Helper()

	spec := b.spec("session")
	spec.Grace = 12 * time.Second // the race detector holds a process up as it ends
	p := b.start(t, spec)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := wire.Open(ctx, p.Conn(), wire.HostOptions{Incarnation: 1, Instance: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if got := s.Description(); got.Version != "1.2.3" {
		t.Errorf("description = %+v", got)
	}
	return p, s
}

func TestSessionOverProcess(t *testing.T) {
	b := setup(t)
	p, s := openSession(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
	if exit := p.Exit(); exit.Code != 0 || exit.Signal != 0 {
		t.Errorf("plugin %v, although it was only asked to end", exit)
	}
	<-s.Done()
}

func TestCrashDuringCall(t *testing.T) {
	b := setup(t)
	p, s := openSession(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, _, err := s.Dispatch(ctx, &phases.Dispatch{}, func() {})
	if err == nil || ctx.Err() != nil {
		t.Errorf("call in a plugin that ended: %v", err)
	}
	if exit := p.Exit(); exit.Code != 7 || exit.Asked {
		t.Errorf("exit = %+v, want status 7", exit)
	}
}

func TestKilledWhileSessionIsOpen(t *testing.T) {
	b := setup(t)
	p, s := openSession(t, b)
	if err := syscall.Kill(p.PID(), syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	<-p.Done()
	if code := phases.CodeOf(p.Exit().Err("tester")); code != phases.CauseCrash {
		t.Errorf("code = %q", code)
	}
}
