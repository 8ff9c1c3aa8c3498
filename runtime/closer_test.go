package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestCloser: a plugin inside the host is closed with the engine, once and after
// all other calls, whatever it does then; a reload does not close it.
func TestCloser(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		close func(ctx context.Context) error
		want  string // of the error; empty is none
	}{
		{"ends", func(context.Context) error { return nil }, ""},
		{"fails", func(context.Context) error { return errors.New("still there") }, "close the plugin p: still there"},
		{"panics", func(context.Context) error { panic("oh") }, "close the plugin p: panic: oh"},
		{"takes too long", func(ctx context.Context) error { <-ctx.Done(); return nil }, "close the plugin p: context deadline exceeded"},
		{"is asked in time", func(ctx context.Context) error { return ctx.Err() }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				var configured, closed atomic.Int32
				p := counted("p", &configured)
				p.OnClose = func(ctx context.Context) error { closed.Add(1); return tt.close(ctx) }
				h := newHosted(p)
				eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
				if err != nil {
					t.Fatal(err)
				}
				reload(t, eng, h.reloaded(func(next *hosted) { next.plugin("p").Config = raw(`{"new":true}`) }))
				dispatch(t, eng, &phases.PrePromptCompileInput{})
				if closed.Load() != 0 {
					t.Error("it is closed by a reload")
				}
				late, cancel := context.WithCancel(t.Context())
				cancel() // who has no time left does not leave plugins open
				err = eng.Close(late)
				if got := errorText(err); !strings.HasPrefix(got, tt.want) || tt.want == "" && err != nil {
					t.Errorf("error %q, want %q", got, tt.want)
				}
				if err := eng.Close(t.Context()); err != nil || closed.Load() != 1 || configured.Load() != 2 {
					t.Errorf("closed %d times, configured %d times, error %v", closed.Load(), configured.Load(), err)
				}
			})
		})
	}
}

// TestCloserAfterAFailedStart: an engine that does not start leaves nothing.
func TestCloserAfterAFailedStart(t *testing.T) {
	t.Parallel()

	var closed atomic.Int32
	good := plugin("good", section("h", "x", "text"))
	good.OnClose = func(context.Context) error { closed.Add(1); return nil }
	bad := plugin("bad")
	onStart(bad, func(context.Context) error { return &phases.ConfigError{Message: "not that"} })
	h := newHosted(good, bad)
	if _, err := runtime.New(t.Context(), &h.cfg, h.opts); err == nil || closed.Load() != 1 {
		t.Errorf("closed %d times, error %v", closed.Load(), err)
	}
}

// errorText is an error's text; empty for none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
