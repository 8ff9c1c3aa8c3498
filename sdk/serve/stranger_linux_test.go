package serve_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
)

// TestStrangerIsRefused connects to a plugin that was told of another host.
func TestStrangerIsRefused(t *testing.T) {
	t.Parallel()
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	mark := "GRAPNEL_MARK=1.1." + namespace[len("pid:["):len(namespace)-1] + "/x"
	c := newClient(t, program(t, "plugin", mark))
	addr, err := c.Start()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := wire.Connect(addr.String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if s, err := wire.Open(ctx, conn, wire.HostOptions{Incarnation: 1, Instance: "greeter"}); err == nil || ctx.Err() != nil {
		t.Errorf("a process that is not the host opens a session: %v, %v", s, err)
	}
}
