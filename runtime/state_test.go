package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// asker is an engine whose plugins only ask their host: ask makes one call as
// the named plugin in a turn of a session, on its own account if that is "-".
type asker struct {
	eng *runtime.Engine

	mu    sync.Mutex
	ask   func(ctx context.Context, h phases.Host) (json.RawMessage, error)
	hosts map[string]phases.Host
	got   string
}

func startAsker(t *testing.T, o func(*runtime.Options), plugins ...string) *asker {
	t.Helper()
	a := &asker{hosts: map[string]phases.Host{}}
	var all []*sdk.Plugin
	for _, name := range plugins {
		p := plugin(name, on("h", phases.PrePolicy, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			if c.Context.Flags[name] {
				a.note(a.ask(ctx, c.Host))
			}
			return nil, nil
		}))
		p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.hosts[name] = c.Host
			return sdk.Setup{}, nil
		}
		all = append(all, p)
	}
	h := newHosted(all...)
	if o != nil {
		o(&h.opts)
	}
	a.eng = h.start(t)
	return a
}

func (a *asker) note(result json.RawMessage, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = string(result)
	if err != nil {
		a.got = string(phases.CodeOf(err)) + ": " + err.Error()
	}
}

// in calls the service "state" within a turn and returns the answer, or code and message.
func (a *asker) in(t *testing.T, session, plugin, method, params string) string {
	t.Helper()
	a.ask = func(ctx context.Context, h phases.Host) (json.RawMessage, error) {
		return h.Call(ctx, "state", method, json.RawMessage(params))
	}
	turn := host()
	turn.SessionID, turn.Flags = session, map[string]bool{plugin: true}
	if _, err := a.eng.Dispatch(t.Context(), turn, &phases.PrePolicyInput{}); err != nil {
		t.Fatal(err)
	}
	return a.got
}

// TestState: a plugin finds again what it put, in its session and nobody else's.
func TestState(t *testing.T) {
	t.Parallel()

	a := startAsker(t, nil, "p", "q")
	steps := []struct {
		session, plugin, method, params, want string
	}{
		{"s", "p", "get", "", `{"value":null}`},
		{"s", "p", "put", `{"value":{"n":1}}`, `{}`},
		{"s", "p", "get", "{}", `{"value":{"n":1}}`},
		{"s", "q", "get", "", `{"value":null}`},
		{"s2", "p", "get", "", `{"value":null}`},
		{"s2", "p", "get", `{"session_id":"s"}`, `{"value":{"n":1}}`},
		{"s", "p", "put", `{"value":[2]}`, `{}`},
		{"s", "p", "get", "", `{"value":[2]}`},
		{"s", "p", "put", `{"value":null}`, `{}`},
		{"s", "p", "get", "", `{"value":null}`},
		{"", "p", "get", "", "no session"},
		{"s", "p", "get", `{"session_id":"` + strings.Repeat("x", phases.MaxIDBytes+1) + `"}`, "oversize_request"},
		{"s", "p", "put", `{"value":1,"workspace_id":"` + strings.Repeat("x", phases.MaxIDBytes+1) + `"}`, "oversize_request"},
		{"s", "p", "get", `{"session_id":"` + strings.Repeat("x", phases.MaxIDBytes) + `"}`, `{"value":null}`},
		{"s", "p", "put", "", "value"},
		{"s", "p", "put", `{"value":1,"vlaue":2}`, `unknown key "vlaue"`},
		{"s", "p", "put", `{"value":"` + strings.Repeat("x", hostservice.MaxState) + `"}`, "oversize_request"},
		{"s", "p", "get", `[`, "invalid_reply"},
		{"s", "p", "gte", `{}`, `did you mean "get"`},
	}
	for _, s := range steps {
		got := a.in(t, s.session, s.plugin, s.method, s.params)
		if strings.HasPrefix(s.want, "{") && got != s.want || !strings.Contains(got, s.want) {
			t.Errorf("%s of %s in %q with %.60s: got %s; want %s", s.method, s.plugin, s.session, s.params, got, s.want)
		}
	}
}

// TestStateOfOthers: a plugin that keeps more than there is room for, here on its own account, loses its own values, first
// those of the workspace that has most, and nobody else's.
func TestStateOfOthers(t *testing.T) {
	t.Parallel()

	a := startAsker(t, nil, "p", "q")
	for _, plugin := range []string{"p", "q"} {
		a.in(t, "s", plugin, "put", `{"value":1}`)
	}
	flood := func(workspace string) {
		for i := range 4096 {
			if _, err := a.hosts["p"].Call(t.Context(), "state", "put", fmt.Appendf(nil, `{"workspace_id":%q,"session_id":"%d","value":2}`, workspace, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	flood("v")
	if got := a.in(t, "s", "p", "get", ""); got != `{"value":1}` {
		t.Errorf("after a flood of another workspace: %s", got)
	}
	flood("w")
	if got := a.in(t, "s", "p", "get", ""); got != `{"value":null}` {
		t.Errorf("the first of so many: %s", got)
	}
	if got := a.in(t, "s", "q", "get", ""); got != `{"value":1}` {
		t.Errorf("the other plugin's: %s", got)
	}
}

// oddState cannot keep anything, or evicts values at every call.
type oddState struct {
	evicted int
	err     error
}

func (s oddState) GetState(context.Context, phases.StateKey) (json.RawMessage, error) {
	return nil, s.err
}

func (s oddState) PutState(context.Context, phases.StateKey, json.RawMessage) (int, error) {
	return s.evicted, s.err
}

// TestStateEviction: an operator learns that sessions lost their values.
func TestStateEviction(t *testing.T) {
	t.Parallel()

	var told journal
	a := startAsker(t, func(o *runtime.Options) {
		o.State = oddState{evicted: 2}
		o.OnEvent = func(ev runtime.Event) {
			if ev.Code == "state_evicted" {
				told.add(string(ev.Kind) + " " + ev.Plugin + " " + ev.Message)
			}
		}
	}, "p")
	if got := a.in(t, "s", "p", "put", `{"value":1}`); got != "{}" {
		t.Errorf("got %s", got)
	}
	if got := told.all(); len(got) != 1 || !strings.HasPrefix(got[0], "diagnostic p ") || !strings.Contains(got[0], "2 sessions") {
		t.Errorf("events %q", got)
	}
}

// TestStateFails: what is wrong with the host's store stays with the host, unless
// it was worded for plugins.
func TestStateFails(t *testing.T) {
	t.Parallel()

	secret := errors.New("dial tcp db.internal: refused")
	a := startAsker(t, func(o *runtime.Options) { o.State = oddState{err: secret} }, "p")
	if got := a.in(t, "s", "p", "get", ""); !strings.HasPrefix(got, "internal: ") || strings.Contains(got, "db.internal") {
		t.Errorf("got %s", got)
	}
	a = startAsker(t, func(o *runtime.Options) { o.State = oddState{err: phases.Errorf(phases.CauseOverloaded, "later")} }, "p")
	if got := a.in(t, "s", "p", "put", `{"value":1}`); !strings.HasPrefix(got, "overloaded: ") {
		t.Errorf("got %s", got)
	}
}

// TestStateInMemoryIsTold: an operator who grants the service learns that nothing
// lasts, and only then.
func TestStateInMemoryIsTold(t *testing.T) {
	t.Parallel()

	told := func(grants []string, state runtime.State) (plugins []string) {
		h := newHosted(plugin("p", on("h", phases.PrePolicy, reply())))
		h.plugin("p").Grants.Host, h.opts.State = grants, state
		for _, d := range h.start(t).Diagnostics() {
			if d.Code == "state_in_memory" {
				plugins = append(plugins, d.Plugin)
			}
		}
		return plugins
	}
	checkSame(t, "granted, in memory", told([]string{"state"}, nil), []string{"p"})
	if got := append(told([]string{"documents"}, nil), told([]string{"state"}, oddState{})...); got != nil {
		t.Errorf("told without need: %v", got)
	}
}

// TestServiceMistakes: what is wrong with the host's own services shows at the
// start.
func TestServiceMistakes(t *testing.T) {
	t.Parallel()

	call := func(context.Context, runtime.Caller, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	for want, m := range map[string]runtime.Method{
		"no function":              {},
		"schema of the parameters": {Call: call, Params: json.RawMessage(`{"type":3}`)},
		"schema of the result":     {Call: call, Result: json.RawMessage(`{`)},
	} {
		h := newHosted()
		h.opts.Services = map[string]runtime.Service{"s": {"m": m}}
		_, err := runtime.New(t.Context(), &h.cfg, h.opts)
		if err == nil || !strings.Contains(err.Error(), `host service "s": method "m"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

// TestHostCallsAreBounded: one plugin inside the host cannot have more than 64
// host calls on their way, as over the wire.
func TestHostCallsAreBounded(t *testing.T) {
	t.Parallel()

	const most = 64
	running, end := make(chan struct{}, most), make(chan struct{})
	a := startAsker(t, func(o *runtime.Options) {
		o.Services = map[string]runtime.Service{"slow": serve(func(context.Context, runtime.Caller, json.RawMessage) (json.RawMessage, error) {
			running <- struct{}{}
			<-end
			return json.RawMessage(`1`), nil
		})}
	}, "p")
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() {
			if got, err := a.hosts["p"].Call(t.Context(), "slow", "get", nil); err != nil || string(got) != "1" {
				t.Errorf("got %s, %v", got, err)
			}
		})
		<-running
	}
	_, err := a.hosts["p"].Call(t.Context(), "slow", "get", nil)
	if phases.CodeOf(err) != phases.CauseOverloaded {
		t.Errorf("one more: %v", err)
	}
	close(end)
	wg.Wait()
	if _, err := a.hosts["p"].Call(t.Context(), "slow", "get", nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
