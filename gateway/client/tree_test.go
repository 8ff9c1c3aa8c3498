package client_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/gateway/client"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/tree"
)

// treeServed is a gateway over a model.
type treeServed struct {
	model          tree.Store
	http, ws, unix string
	stop           context.CancelFunc
}

func serveTree(t *testing.T) *treeServed {
	t.Helper()
	s := &treeServed{model: storetest.Tree(t, time.Now)}
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
