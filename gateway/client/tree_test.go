package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/gateway/client"
	"github.com/grapnelhq/grapnel/internal/treetest"
	"github.com/grapnelhq/grapnel/tree"
)

// treeServed is a gateway over a model.
type treeServed struct {
	model          *treetest.Model
	http, ws, unix string
	stop           context.CancelFunc
}

func serveTree(t *testing.T) *treeServed {
	t.Helper()
	s := &treeServed{model: treetest.NewModel(time.Now)}
	g, err := gateway.New(gateway.Options{Tree: s.model})
	if err != nil {
		t.Fatal(err)
	}
	s.http, s.ws, s.unix, s.stop = listen(t, func(ctx context.Context, l ...net.Listener) error { return g.Serve(ctx, l...) })
	return s
}

// treeOf is the tree of a target.
func treeOf(t *testing.T, target string) tree.Store {
	t.Helper()
	return client.NewTree(dial(t, target, client.Options{}))
}

func TestTreeErrors(t *testing.T) {
	t.Parallel()

	s := serveTree(t)
	remote := treeOf(t, s.ws)
	ctx := t.Context()
	if _, err := remote.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "w", Name: "W"}); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "w", ID: "f", Name: "F"}); err != nil {
		t.Fatal(err)
	}
	root := tree.Scope{WorkspaceID: "w"}
	saved, err := remote.Save(ctx, tree.Save{Scope: root, Content: "one", Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		call func(s tree.Store) error
		want tree.Code
	}{
		{"invalid UTF-8", func(s tree.Store) error {
			_, err := s.Save(ctx, tree.Save{Scope: root, Content: "\xff"})
			return err
		}, tree.CodeInvalid},
		{"a NUL", func(s tree.Store) error {
			_, err := s.Save(ctx, tree.Save{Scope: root, Content: "\x00"})
			return err
		}, tree.CodeInvalid},
		{"too long", func(s tree.Store) error {
			_, err := s.Save(ctx, tree.Save{Scope: root, Content: strings.Repeat("é", tree.MaxChars+1), ExpectedVersion: &saved.Doc.Version})
			return err
		}, tree.CodeTooLarge},
		{"a conflict", func(s tree.Store) error {
			_, err := s.Save(ctx, tree.Save{Scope: root, Content: "two"})
			return err
		}, tree.CodeConflict},
		{"below itself", func(s tree.Store) error {
			_, err := s.MoveFolder(ctx, tree.MoveFolder{WorkspaceID: "w", FolderID: "f", ParentID: "f"})
			return err
		}, tree.CodeCycle},
		{"unknown workspace", func(s tree.Store) error {
			_, err := s.Doc(ctx, tree.Scope{WorkspaceID: "v"})
			return err
		}, tree.CodeNotFound},
		{"unknown thread in an unknown workspace", func(s tree.Store) error {
			_, err := s.Resolve(ctx, tree.ThreadRef{WorkspaceID: "v", ThreadID: "t"})
			return err
		}, tree.CodeNotFound},
	}
	for _, tt := range tests {
		want, got := tt.call(s.model), tt.call(remote)
		w, _ := errors.AsType[*tree.Error](want)
		g, ok := errors.AsType[*tree.Error](got)
		if !ok || w == nil || g.Code != tt.want || w.Code != tt.want {
			t.Errorf("%s: got %v, the store says %v", tt.name, got, want)
			continue
		}
		if diff := cmp.Diff(g.Conflict, w.Conflict); diff != "" {
			t.Errorf("%s: conflict (-got +want):\n%s", tt.name, diff)
		}
	}
}

// A thread that is not known counts as one at the root.
func TestTreeResolveUnknown(t *testing.T) {
	t.Parallel()

	s := serveTree(t)
	remote := treeOf(t, s.http)
	if _, err := remote.CreateWorkspace(t.Context(), tree.CreateWorkspace{ID: "w", Name: "W"}); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Save(t.Context(), tree.Save{Scope: tree.Scope{WorkspaceID: "w"}, Content: "root"}); err != nil {
		t.Fatal(err)
	}
	got, err := remote.Resolve(t.Context(), tree.ThreadRef{WorkspaceID: "w", ThreadID: "t"})
	if err != nil || got.Known || got.Effective == nil || got.Effective.Doc.Content != "root" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTreeNotOnWire(t *testing.T) {
	t.Parallel()

	remote := client.NewTree(nil)
	ctx := t.Context()
	_, changes := remote.Changes(ctx, 0, 1)
	_, affected := remote.Affected(ctx, tree.Scope{})
	_, thin := remote.Thin(ctx, time.Time{})
	for _, err := range []error{changes, affected, thin, remote.Listen(ctx, func() {})} {
		if !tree.HasCode(err, tree.CodeInvalid) {
			t.Errorf("got %v", err)
		}
	}
}

// callerFunc stands in for a client.
type callerFunc func() error

func (f callerFunc) Call(context.Context, string, any, any) error { return f() }

func TestTreeErrorsOfOthers(t *testing.T) {
	t.Parallel()

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want tree.Code // empty: the error stays what it is
	}{
		{"no answer", t.Context(), client.ErrLost, tree.CodeUnavailable},
		{"no answer, and a context that has ended", ended, client.ErrLost, ""},
		{"a context that has ended", ended, context.Canceled, ""},
		{"unauthorized", t.Context(), &client.Error{Code: "unauthorized"}, ""},
		{"internal", t.Context(), &client.Error{Code: "internal"}, ""},
		{"a conflict that cannot be read", t.Context(), &client.Error{Code: "version_conflict", Data: []byte(`{"actual_version":"x"}`)}, ""},
		{"unavailable", t.Context(), &client.Error{Code: "unavailable"}, tree.CodeUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := client.NewTree(callerFunc(func() error { return tt.err })).Workspaces(tt.ctx)
			if tt.want == "" && !errors.Is(err, tt.err) || tt.want != "" && !tree.HasCode(err, tt.want) {
				t.Errorf("got %v, want the code %q", err, tt.want)
			}
			if tt.want == "" && tree.HasCode(err, tree.CodeUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
}
