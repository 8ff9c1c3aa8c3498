package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// counted is a plugin that counts how often it was configured, and contributes
// what its configuration says.
func counted(name string, starts *atomic.Int32) *sdk.Plugin {
	p := plugin(name)
	p.ConfigSchema = raw(`{"type":"object"}`)
	p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
		starts.Add(1)
		if strings.Contains(string(c.Config), "refuse") {
			return sdk.Setup{}, &phases.ConfigError{Pointer: "/x", Message: "not that"}
		}
		return sdk.Setup{Hooks: []sdk.Hook{section("h", name, "config "+string(c.Config))}}, nil
	}
	return p
}

// TestReload: what did not change keeps running, what changed is started anew,
// and a turn ends on what it began with.
func TestReload(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var kept, changed atomic.Int32
		h := newHosted(counted("kept", &kept), counted("changed", &changed))
		eng := h.start(t)
		turn := begin(t, eng)
		cfg := h.reloaded(func(next *hosted) {
			next.plugin("changed").Config = raw(`{"new":true}`)
			next.plugin("kept").Subscriptions = map[string]phases.Override{"kept.h": {Priority: new(7)}}
		})
		reload(t, eng, cfg)
		if kept.Load() != 1 || changed.Load() != 2 {
			t.Errorf("kept was started %d times, changed %d times", kept.Load(), changed.Load())
		}

		before := outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{}))
		after := dispatch(t, eng, &phases.PrePromptCompileInput{})
		// A plugin inside the host is one value: its configuration is the newest.
		if got := contents(before); got != `changed: config {"new":true}; kept: config ` {
			t.Errorf("the turn sees %q", got)
		}
		if got := contents(after); got != `kept: config ; changed: config {"new":true}` {
			t.Errorf("the next one sees %q", got)
		}
		if a, b := runOf(t, before, "kept.h").Generation, runOf(t, after, "kept.h").Generation; a != 1 || b != 2 {
			t.Errorf("generations %d and %d", a, b)
		}
		outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{}))
		synctest.Wait() // the old generation is dropped without a minute's wait
	})
}

// contents lists the merged sections.
func contents(out *phases.Outcome) string {
	var lines []string
	for _, s := range out.Merged.Sections {
		lines = append(lines, s.SectionID+": "+s.Content)
	}
	return strings.Join(lines, "; ")
}

// TestReloadThatFails: the running configuration stays, and nothing of the other
// one.
func TestReloadThatFails(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(next *hosted)
		want   string
	}{
		{"refused configuration", func(next *hosted) { next.plugin("p").Config = raw(`{"refuse":1}`) }, "not that"},
		{"mistake in the plan", func(next *hosted) { next.override("p.h", phases.Override{After: &[]string{"no.such"}}) }, "no.such"},
		{"unknown plugin", func(next *hosted) { next.plugin("p").Builtin, next.plugin("p").Name = "other", "q" }, "other"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var starts atomic.Int32
			var j journal
			h := newHosted(counted("p", &starts))
			h.opts.OnEvent = j.events(runtime.EventReload)
			eng := h.start(t)
			err := eng.Reload(t.Context(), h.reloaded(tt.change))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Reload: %v", err)
			}
			out := dispatch(t, eng, &phases.PrePromptCompileInput{})
			if got := contents(out); got != "p: config " || out.Runs[0].Generation != 1 {
				t.Errorf("in force: %q", got)
			}
			checkSame(t, "events", j.all(), []string{"in_force", "refused"})
		})
	}
}

// TestRejectedConfiguration: what a plugin refuses at the first load is the
// operator's error.
func TestRejectedConfiguration(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name, config, schema, want string
	}{
		{"by the plugin", `{"refuse":1}`, `{"type":"object"}`, "not that"},
		{"by its schema", `{"a":1}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, `want a text, got the number 1`},
		{"by having none", `{"a":1}`, ``, "takes no configuration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var starts atomic.Int32
			p := counted("p", &starts)
			p.ConfigSchema = raw(tt.schema)
			h := newHosted(p)
			h.plugin("p").Config = raw(tt.config)
			_, err := runtime.New(t.Context(), &h.cfg, h.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: %v", err)
			}
		})
	}
}

// TestWaitFor: with all, New waits for the slowest; with required, only for who
// is required, and the others take part once they are there.
func TestWaitFor(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name string
		wait runtime.WaitFor
		took time.Duration
		want []string
	}{
		{"all", runtime.WaitAll, 3 * time.Second, []string{"slow.h succeeded", "fast.h succeeded"}},
		{"required", runtime.WaitRequired, time.Second, []string{"fast.h succeeded", "slow.any:turn.pre_policy unavailable unavailable"}}, //nolint:dupword // a state and its code
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				slowly := func(name string, d time.Duration) *sdk.Plugin {
					return onStart(plugin(name, on("h", phases.PrePolicy, reply())), func(context.Context) error { time.Sleep(d); return nil })
				}
				h := newHosted(slowly("slow", 3*time.Second), slowly("fast", time.Second)).
					override("slow.h", phases.Override{Priority: new(1)}).
					phase(phases.PrePolicy, requiring("fast.h"))
				h.opts.WaitFor = tt.wait
				begin := time.Now()
				eng := h.start(t)
				if took := time.Since(begin); took != tt.took {
					t.Errorf("New took %v", took)
				}
				out, err := eng.Dispatch(t.Context(), host(), &phases.PrePolicyInput{})
				if diff := cmp.Diff(states(out), tt.want); diff != "" || (err != nil) != (tt.wait == runtime.WaitRequired) {
					t.Errorf("error %v, ledger (-got +want):\n%s", err, diff)
				}
				time.Sleep(5 * time.Second)
				want := []string{"slow.h succeeded", "fast.h succeeded"}
				checkSame(t, "later", states(dispatch(t, eng, &phases.PrePolicyInput{})), want)
			})
		})
	}
}

// TestNewIsCancelled: New gives up with its context and leaves nothing running.
func TestNewIsCancelled(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := newHosted(onStart(plugin("p", on("h", phases.PrePolicy, reply())), neverUp))
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		if _, err := runtime.New(ctx, &h.cfg, h.opts); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("New: %v", err)
		}
	})
}

// TestClose: it may be called again and at the same time; calls fail afterwards.
func TestClose(t *testing.T) {
	t.Parallel()

	h := newHosted(plugin("p", on("h", phases.PrePolicy, reply())))
	eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
	if err != nil {
		t.Fatal(err)
	}
	turn := begin(t, eng)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := eng.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for name, err := range map[string]error{
		"Dispatch":       errorOf(eng.Dispatch(t.Context(), host(), &phases.PrePolicyInput{})),
		"BeginTurn":      errorOf(eng.BeginTurn(t.Context(), host())),
		"CompileTurn":    errorOf(eng.CompileTurn(t.Context(), host(), runtime.CompileInput{})),
		"CallTool":       errorOf(eng.CallTool(t.Context(), "p", phases.ToolCall{Tool: "x"})),
		"StartSession":   errorOf(eng.StartSession(t.Context(), phases.Context{}, "startup")),
		"a turn's phase": errorOf(turn.Dispatch(t.Context(), &phases.PrePolicyInput{})),
		"Reload":         eng.Reload(t.Context(), &h.cfg),
	} {
		if !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Errorf("WaitBackground: %v", err)
	}
}

// TestCloseDuringReload: nothing of a configuration that is just being loaded
// survives.
func TestCloseDuringReload(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var j journal
		p := plugin("p", on("h", phases.PrePolicy, reply()))
		p.ConfigSchema = raw(`{"type":"object"}`)
		p.OnConfigure = func(ctx context.Context, c *phases.Configuration) (sdk.Setup, error) {
			if c.Config != nil {
				return sdk.Setup{}, neverUp(ctx)
			}
			return sdk.Setup{}, nil
		}
		h := newHosted(p)
		h.opts.OnEvent = j.events(runtime.EventPlugin)
		eng := h.start(t)
		var reload sync.WaitGroup
		reload.Go(func() {
			cfg := h.reloaded(func(next *hosted) { next.plugin("p").Config = raw(`{"a":1}`) })
			if err := eng.Reload(context.WithoutCancel(t.Context()), cfg); err == nil {
				t.Error("the reload went through")
			}
		})
		synctest.Wait()
		if err := eng.Close(t.Context()); err != nil {
			t.Error(err)
		}
		reload.Wait()
		if n := len(slices.DeleteFunc(j.all(), func(line string) bool { return line != "p stopped" })); n != 2 {
			t.Errorf("%d of 2 instances stopped: %v", n, j.all())
		}
	})
}

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
