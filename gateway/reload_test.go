package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// files are what a gateway of a test reads again.
type files struct {
	loaded *Loaded
	err    error
	told   []Reload
}

func (f *files) options(o Options) Options {
	o.Config = "first.yaml"
	o.Load = func(context.Context) (*Loaded, error) { return f.loaded, f.err }
	o.OnReload = func(r Reload) { f.told = append(f.told, r) }
	return o
}

// applied is Loaded.Apply with the given error.
func applied(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// TestReload: what was read is in force as a whole, or not at all, and status says
// which.
func TestReload(t *testing.T) {
	t.Parallel()

	before, after := t.TempDir(), t.TempDir()
	admin := token("ada", []string{"*"}, rpc.ReadRight, rpc.CompileRight, rpc.AdminRight)
	f := &files{}
	o := f.options(Options{Tree: storetest.Tree(t, nil), Engine: &fakeEngine{}, Roots: []string{before}})
	s := serve(t, o.with(admin, token("bob", []string{"*"}, rpc.ReadRight)))
	ada, bob := s.post(t, "ada"), s.post(t, "bob")
	if _, bad := bob.call(t, "config/reload", nil); bad.code() != rpc.CodeUnauthorized {
		t.Errorf("without the right: %+v", bad)
	}
	dirs := func(what, taken, refused string) {
		t.Helper()
		if _, _, err := s.g.inRoots(taken); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, _, err := s.g.inRoots(refused); err == nil {
			t.Errorf("%s: a turn may work in %s", what, refused)
		}
	}
	mistake := &config.Error{File: "g.yaml", Line: 3, Column: 5, Message: "unknown key", Snippet: " | x\n | ^"}
	fine := func() *Loaded {
		return &Loaded{Config: "g.yaml", Roots: []string{after}, Tokens: []rpc.Token{admin}, Changed: []string{"serve"}, Apply: applied(nil)}
	}
	for _, tt := range []struct {
		name string
		bad  func(l *Loaded) error
		want Reload
	}{
		{"a mistake", func(*Loaded) error { return config.Errors{mistake, mistake} }, Reload{Mistakes: []Mistake{{"g.yaml", 3, 5, "unknown key", " | x\n | ^"}, {"g.yaml", 3, 5, "unknown key", " | x\n | ^"}}}},
		{"a restart", func(*Loaded) error { return &RestartError{Keys: []string{"store"}, Err: errors.Join(mistake)} }, Reload{Mistakes: []Mistake{{"g.yaml", 3, 5, "unknown key", " | x\n | ^"}}, NeedsRestart: []string{"store"}}},
		{"a root that is not there", func(l *Loaded) error { l.Roots = append(l.Roots, after+"/no"); return nil }, Reload{}},
		{"a token without a hash", func(l *Loaded) error { l.Tokens = []rpc.Token{{Name: "x"}}; return nil }, Reload{}},
		{"a token that is nobody's name", func(l *Loaded) error { l.Tokens = []rpc.Token{token(strings.Repeat("n", 1000), nil)}; return nil }, Reload{}},
		{"a plugin that refuses", func(l *Loaded) error { l.Apply = applied(fmt.Errorf("engine: %w", mistake)); return nil }, Reload{Mistakes: []Mistake{{"g.yaml", 3, 5, "unknown key", " | x\n | ^"}}}},
	} {
		f.loaded = fine()
		f.err = tt.bad(f.loaded)
		got := do[Reload](t, ada, "config/reload", nil)
		tt.want.Cause, tt.want.Actor, tt.want.Config = ReloadCall, "ada", "g.yaml"
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Reload{}, "At", "TookMS", "Error")); diff != "" || got.Error == "" {
			t.Errorf("%s: %q (-want +got):\n%s", tt.name, got.Error, diff)
		}
		dirs(tt.name, before, after)
		do[any](t, bob, "workspace/list", nil)
		status := do[Status](t, ada, "status", nil)
		if status.Config != "first.yaml" || status.Reload == nil || status.Reload.OK || status.Reload.Error != got.Error {
			t.Errorf("%s: status has %s, %+v", tt.name, status.Config, status.Reload)
		}
	}
	f.loaded, f.err = fine(), nil
	got := do[Reload](t, ada, "config/reload", nil)
	if !got.OK || got.Tokens == nil || *got.Tokens != 1 || !slices.Equal(got.Changed, []string{"serve"}) {
		t.Errorf("got %+v", got)
	}
	dirs("afterwards", after, before)
	if _, bad := bob.call(t, "workspace/list", nil); bad.code() != rpc.CodeUnauthorized {
		t.Errorf("a token that is gone: %+v", bad)
	}
	status := do[Status](t, ada, "status", nil)
	if status.Config != "g.yaml" || status.Reload == nil || !status.Reload.OK || status.ReloadsRefused != 5 {
		t.Errorf("status: %s, refused %d, %+v", status.Config, status.ReloadsRefused, status.Reload)
	}
	if len(f.told) != 7 {
		t.Errorf("told of %d", len(f.told))
	}
}

// TestReloadOneByOne: many at once are done one after the other, and one that
// cannot wait so long says so and changes nothing.
func TestReloadOneByOne(t *testing.T) {
	t.Parallel()

	var at atomic.Int32
	entered, leave := make(chan struct{}), make(chan struct{})
	o := Options{Tree: storetest.Tree(t, nil), Load: func(context.Context) (*Loaded, error) {
		return &Loaded{Apply: func(context.Context) error {
			if at.Add(1) > 1 {
				t.Error("two at once")
			}
			entered <- struct{}{}
			<-leave
			at.Add(-1)
			return nil
		}}, nil
	}}
	g := must(New(o))(t)
	const many = 8
	done := make(chan Reload, many)
	for range many {
		go func() { done <- g.Reload(t.Context(), ReloadSignal, "") }()
	}
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := g.Reload(ctx, ReloadWatch, ""); r.OK || r.Error != context.Canceled.Error() {
		t.Errorf("one that was given up: %+v", r)
	}
	leave <- struct{}{}
	for range many - 1 {
		<-entered
		leave <- struct{}{}
	}
	for range many {
		if r := <-done; !r.OK {
			t.Errorf("got %+v", r)
		}
	}
	if r := serve(t, Options{}).g.Reload(t.Context(), ReloadSignal, ""); r.OK || !strings.Contains(r.Error, "restart it") {
		t.Errorf("a gateway that cannot: %+v", r)
	}
}
