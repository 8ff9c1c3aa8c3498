package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/tree"
)

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
		_, err := client.NewTree(callerFunc(func() error { return tt.err })).Workspaces(tt.ctx)
		if tt.want == "" && !errors.Is(err, tt.err) || tt.want != "" && !tree.HasCode(err, tt.want) {
			t.Errorf("%s: got %v, want the code %q", tt.name, err, tt.want)
		}
		if tt.want == "" && tree.HasCode(err, tree.CodeUnavailable) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}
