package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// reloaded is a copy of the configuration with a change.
func (h *hosted) reloaded(change func(next *hosted)) *config.Config {
	next := &hosted{cfg: h.cfg}
	next.cfg.Plugins = slices.Clone(h.cfg.Plugins)
	change(next)
	return &next.cfg
}

// hopeless refuses its first n starts for a reason that no restart cures.
func hopeless(n int32) *sdk.Plugin {
	p := plugin("p", section("h", "s", "text"))
	var starts atomic.Int32
	return onStart(p, func(context.Context) error {
		if starts.Add(1) <= n {
			return phases.Errorf(phases.CauseVersionMismatch, "it is too old")
		}
		return nil
	})
}

// stateOf is a plugin's state and code.
func stateOf(eng *runtime.Engine, name string) string {
	for _, row := range eng.Plugins() {
		if row.Plugin == name {
			return strings.TrimSpace(string(row.State) + " " + row.Code)
		}
	}
	return "not declared"
}

// TestReloadEndsQuarantine: also with the same words.
func TestReloadEndsQuarantine(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := newHosted(hopeless(1))
		eng := h.start(t)
		time.Sleep(time.Hour)
		if got := stateOf(eng, "p"); got != "quarantined version_mismatch" {
			t.Fatalf("state = %q", got)
		}
		reload(t, eng, &h.cfg)
		synctest.Wait()
		checkSame(t, "sections", sectionIDs(dispatch(t, eng, &phases.PrePromptCompileInput{})), []string{"s"})
	})
}

// TestReleaseOfNothing: the operator is told why nothing happened.
func TestReleaseOfNothing(t *testing.T) {
	t.Parallel()

	eng := newHosted(hopeless(0)).start(t)
	for name, want := range map[string]string{"p": "is ready", "q": `no plugin "q"`} {
		_, err := eng.Release(t.Context(), name)
		refused, ok := errors.AsType[*runtime.ReleaseError](err)
		if !ok || refused.Unknown != (name == "q") || !strings.Contains(err.Error(), want) {
			t.Errorf("Release(%s) = %v, want %q", name, err, want)
		}
	}
	if err := eng.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Release(t.Context(), "p"); !errors.Is(err, runtime.ErrClosed) {
		t.Error("a closed engine released a plugin")
	}
}

// TestReleaseFailsAgain: who releases a plugin learns that nothing has become better;
// and while it waits for its next start, that is the state it is released from.
func TestReleaseFailsAgain(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		eng := newHosted(hopeless(2)).start(t)
		time.Sleep(time.Hour)
		r, err := eng.Release(t.Context(), "p")
		if err != nil || r.Up() || r.State != phases.PluginQuarantined || r.Code != "version_mismatch" || r.Detail == "" {
			t.Fatalf("it failed again: %+v, %v", r, err)
		}
		r, err = eng.Release(t.Context(), "p")
		want := &runtime.Released{Plugin: "p", From: phases.PluginQuarantined, State: phases.PluginReady, Breakers: []string{}}
		if diff := cmp.Diff(want, r); diff != "" || err != nil || !r.Up() {
			t.Errorf("the third start: %v (-want +got):\n%s", err, diff)
		}
	})
}

// TestReleaseClosesBreakers: a hook that is not asked any more because it failed is
// asked again at once, whether its plugin was down or not.
func TestReleaseClosesBreakers(t *testing.T) {
	t.Parallel()

	eng := newHosted(plugin("p", section("h", "BAD ID", "x"))).start(t)
	breaker := func() string { return hookRow(t, eng, "p.h").Breaker }
	for range 5 {
		dispatch(t, eng, &phases.PrePromptCompileInput{})
	}
	if breaker() != "open" {
		t.Fatalf("the breaker is %s", breaker())
	}
	r, err := eng.Release(t.Context(), "p")
	want := &runtime.Released{Plugin: "p", From: phases.PluginReady, State: phases.PluginReady, Breakers: []string{"p.h"}}
	if diff := cmp.Diff(want, r); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if breaker() != "closed" {
		t.Errorf("the breaker is %s", breaker())
	}
	if run := runOf(t, dispatch(t, eng, &phases.PrePromptCompileInput{}), "p.h"); run.Code == string(phases.CauseBreakerOpen) {
		t.Errorf("it is not asked: %+v", run)
	}
}

// late is a plugin that describes itself only when it is released. Its hook
// wants to run before q's, which an override can make impossible.
func late(release <-chan struct{}) *sdk.Plugin {
	p := plugin("late", sdk.Hook{Name: "h", Phase: phases.PrePromptCompile, Any: reply(), Before: []string{"q.h?"}})
	return onStart(p, func(ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// impossible puts q's hook before late's, which wants the opposite.
func impossible(h *hosted) {
	h.plugin("q").Subscriptions = map[string]phases.Override{"q.h": {Before: &[]string{"late.h?"}}}
}

// TestLateDescription: whether the hooks of a plugin fit that describes itself
// long after the load is up to the generation in force.
func TestLateDescription(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name         string
		first, again func(h *hosted)
		want         string
		hooks        int
	}{
		{"fits both", func(*hosted) {}, func(*hosted) {}, "ready", 2},
		{"does not fit the one being retired", impossible, func(*hosted) {}, "ready", 2},
		{"does not fit the one in force", func(*hosted) {}, impossible, "quarantined invalid_reply", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				h := newHosted(late(release), plugin("q", section("h", "s", "text")))
				h.opts.WaitFor = runtime.WaitRequired
				cfg := h.reloaded(tt.again)
				tt.first(h)
				eng := h.start(t)
				synctest.Wait() // q is up
				begin(t, eng)   // keeps the first generation from being dropped
				reload(t, eng, cfg)
				close(release)
				synctest.Wait()
				if got := stateOf(eng, "late"); got != tt.want {
					t.Errorf("state = %q, want %q", got, tt.want)
				}
				out := dispatch(t, eng, &phases.PrePromptCompileInput{})
				if got := len(out.Runs); got != tt.hooks {
					t.Errorf("%d runs, want %d: %q", got, tt.hooks, states(out))
				}
				if err := eng.Reload(t.Context(), cfg); err != nil && tt.hooks == 2 {
					t.Errorf("a later reload: %v", err)
				}
			})
		})
	}
}

// exclusive is an engine with one plugin that must not run twice at once, and
// what happened to it.
func exclusive(t *testing.T, log *journal) (*hosted, *runtime.Engine) {
	t.Helper()
	p := plugin("p", section("h", "s", "text"))
	p.ConfigSchema = raw(`{"type":"object"}`)
	p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
		log.add("start " + string(c.Config))
		if strings.Contains(string(c.Config), "bad") {
			return sdk.Setup{}, &phases.ConfigError{Pointer: "/x", Message: "no"}
		}
		return sdk.Setup{}, nil
	}
	h := newHosted(p)
	h.plugin("p").Reload = "exclusive"
	h.plugin("p").Config = raw(`{"x":"one"}`)
	h.opts.OnEvent = log.events(runtime.EventPlugin)
	return h, h.start(t)
}

// TestExclusiveReload: the predecessor has ended before the new one starts.
func TestExclusiveReload(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var log journal
		h, eng := exclusive(t, &log)
		begin(t, eng) // keeps the first generation from being dropped
		cfg := h.reloaded(func(next *hosted) { next.plugin("p").Config = raw(`{"x":"two"}`) })
		reload(t, eng, cfg)
		want := []string{"p starting", `start {"x":"one"}`, "p ready", "p draining", "p starting", "p starting", `start {"x":"two"}`, "p ready"}
		checkSame(t, "events", log.all(), want)
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkSame(t, "sections", sectionIDs(out), []string{"s"})
		time.Sleep(time.Hour) // the old generation is dropped
		if got := log.all(); got[len(got)-1] != "p stopped" || slices.Contains(got[len(want):], `start {"x":"one"}`) {
			t.Errorf("afterwards: %q", got[len(want):])
		}
	})
}

// TestExclusiveReloadThatFails: the predecessor comes back.
func TestExclusiveReloadThatFails(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var log journal
		h, eng := exclusive(t, &log)
		cfg := h.reloaded(func(next *hosted) { next.plugin("p").Config = raw(`{"x":"bad"}`) })
		if err := eng.Reload(t.Context(), cfg); err == nil {
			t.Fatal("the bad configuration was taken")
		}
		synctest.Wait()
		if got := stateOf(eng, "p"); got != "ready" {
			t.Errorf("state = %q", got)
		}
		starts := slices.DeleteFunc(log.all(), func(line string) bool { return !strings.HasPrefix(line, "start ") })
		checkSame(t, "starts", starts, []string{`start {"x":"one"}`, `start {"x":"bad"}`, `start {"x":"one"}`})
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkSame(t, "sections", sectionIDs(out), []string{"s"})
	})
}
