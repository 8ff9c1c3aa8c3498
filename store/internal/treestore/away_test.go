package treestore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// TestServerGoesAway ends the server under a tree. All calls say that it is not
// available, who listens is told, and it works again when the server does. The
// server is not shared with other tests.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()

	pg, dsn := shared.Own(t)
	s := open(t, dsn)
	for n := range 2 {
		saveText(t, s, fmt.Sprint("before ", n))
		listening := make(chan struct{}, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- s.Listen(t.Context(), func() {
				select {
				case listening <- struct{}{}:
				default:
				}
			})
		}()
		<-listening
		if err := pg.Crash(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCode(t, <-ended, tree.CodeUnavailable)
		for name, call := range callsOf(s) {
			if err := call(t.Context()); !tree.HasCode(err, tree.CodeUnavailable) {
				t.Errorf("%s without a server: %v", name, err)
			}
		}
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := saveText(t, s, fmt.Sprint("after ", n)); d.Version != int64(2*n+2) {
			t.Errorf("version %d after the crash", d.Version)
		}
		if list, _ := awaitChanges(t, s, 0, 2*n+3); len(list) != 2*n+3 {
			t.Errorf("changes %q", list)
		}
	}
}

// callsOf are a call of each kind.
func callsOf(s *treestore.Store) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"save": func(ctx context.Context) error {
			_, err := s.Save(ctx, tree.Save{Scope: scope(""), Content: "x"})
			return err
		},
		"tree":   func(ctx context.Context) error { _, err := s.Tree(ctx, tree.Query{Scope: scope("")}); return err },
		"listen": func(ctx context.Context) error { return s.Listen(ctx, func() {}) },
	}
}
