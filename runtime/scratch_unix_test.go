//go:build unix

package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// early has a hook that answers before the host has answered it.
func early() *sdk.Plugin {
	hook := func(ctx context.Context, c *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		if c.Context.TurnID == "early" {
			go func() { _, _ = c.Host.Call(context.WithoutCancel(ctx), "slow", "get", nil) }()
			if _, err := c.Host.Call(ctx, "slow", "now", nil); err != nil {
				return nil, err
			}
		}
		return sdk.Reply(&phases.PromptSection{SectionID: badSection, Title: "Early", Content: c.Context.TurnID})
	}
	return &sdk.Plugin{Name: "bad", Version: "1.0.0", Hooks: []sdk.Hook{{Name: "h", Kinds: []phases.Kind{phases.KindPromptSection}, PrePromptCompile: hook}}}
}

// TestContextsStay: a host call that outlives its dispatch keeps the context of that dispatch, not of a later one.
func TestContextsStay(t *testing.T) {
	type turn struct{}
	b := newBench(t)
	kept := make(chan context.Context, 1)
	release, entered := make(chan struct{}), make(chan struct{})
	services := map[string]runtime.Service{"slow": {
		"get": {Call: func(ctx context.Context, _ runtime.Caller, _ json.RawMessage) (json.RawMessage, error) {
			kept <- ctx
			close(entered)
			<-release
			return nil, nil
		}},
		"now": {Call: func(context.Context, runtime.Caller, json.RawMessage) (json.RawMessage, error) {
			<-entered
			return nil, nil
		}},
	}}
	eng := b.startWith(t, patient(bad(t, "bad", "early")), runtime.Options{Services: services})
	defer close(release)
	dispatch := func(id string) {
		t.Helper()
		ctx := context.WithValue(t.Context(), turn{}, id)
		out, err := eng.Dispatch(ctx, phases.Context{TurnID: id}, &phases.PrePromptCompileInput{})
		if err != nil || len(out.Merged.Sections) != 1 || out.Merged.Sections[0].Content != id {
			t.Fatalf("%v %+v", err, out)
		}
	}
	dispatch("early")
	ctx := <-kept
	until, _ := ctx.Deadline()
	<-ctx.Done() // a moment after the dispatch
	for range 100 {
		dispatch("later")
		now, _ := ctx.Deadline()
		if !errors.Is(ctx.Err(), context.Canceled) || ctx.Value(turn{}) != "early" || !now.Equal(until) {
			t.Fatalf("the context is now %v's, with %v until %s, once %s", ctx.Value(turn{}), ctx.Err(), now, until)
		}
	}
}

// TestLaneLostOnTheWay: a plugin that is started by a program which hands on no descriptors serves over gRPC.
func TestLaneLostOnTheWay(t *testing.T) {
	b := newBench(t)
	p := bad(t, "bad", "early")
	script := `for fd in 3 4 5 6 7; do eval "exec $fd>&-"; done; exec "$0" "$@"`
	p.Args = append([]string{"-c", script, p.Command}, p.Args...)
	p.Command, p.Path = "/bin/sh", "/bin/sh"
	out := dispatch(t, b.startWith(t, patient(p), runtime.Options{}), &phases.PrePromptCompileInput{})
	if run := runOf(t, out, "bad.h"); run.State != phases.StateSucceeded {
		t.Errorf("%+v", run)
	}
}
