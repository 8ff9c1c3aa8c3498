package serve_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// TestLastWords: no line is lost that a plugin writes to os.Stderr right before it ends.
func TestLastWords(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 30 {
		p, err := proc.Start(ctx, proc.Spec{
			Name: "dying", Path: self, AllowUnsafePath: true, RuntimeDir: t.TempDir(), Env: proc.Environment{Set: map[string]string{modeVar: "dying"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		session, err := wire.Open(ctx, p.Conn(), wire.HostOptions{Incarnation: 1, Instance: "dying"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Configure(ctx, &phases.Configuration{Instance: "dying"}); err == nil {
			t.Error("a plugin that has ended took its configuration")
		}
		if exit := p.Exit(); exit.Code != 3 || !slices.Contains(exit.Stderr, "last words") {
			t.Fatalf("start %d: %v; it wrote %q", i, exit, exit.Stderr)
		}
		session.Close()
		if err := p.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
}
