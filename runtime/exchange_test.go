package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// exchangeLog keeps the exchanges of a test, as deep as the test looks.
type exchangeLog struct {
	mu   sync.Mutex
	list []runtime.Exchange
	// answer is what the hook of the engine returns.
	answer error
}

// note is Options.OnExchange. Results are copied, for merging changes them later.
func (l *exchangeLog) note(x *runtime.Exchange) error {
	kept := *x
	if x.Result != nil {
		data, err := json.Marshal(x.Result.Contributions)
		var cs phases.Contributions
		if err = errors.Join(err, json.Unmarshal(data, &cs)); err != nil {
			return err
		}
		kept.Result = &phases.Result{Contributions: cs}
	}
	kept.HostCalls = slices.Clone(x.HostCalls)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, kept)
	return l.answer
}

// of returns the exchanges of a kind.
func (l *exchangeLog) of(kind runtime.ExchangeKind) []runtime.Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.list), func(x runtime.Exchange) bool { return x.Kind != kind })
}

// recorded is a hosted engine with a log.
func recorded(t testing.TB, h *hosted) (*runtime.Engine, *exchangeLog) {
	t.Helper()
	log := &exchangeLog{}
	h.opts.OnExchange = log.note
	return h.start(t), log
}

// askingHost asks the host twice, for what is there and for what is not granted.
func askingHost(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
	if _, err := c.Host.Call(ctx, "state", "put", json.RawMessage(`{"value":1,"session_id":"s"}`)); err != nil {
		return nil, err
	}
	_, err := c.Host.Call(ctx, "vault", "open", nil)
	return []phases.Contribution{&phases.PromptSection{SectionID: "house_rules", Content: string(phases.CodeOf(err))}}, nil
}

func TestExchangeOfHook(t *testing.T) {
	t.Parallel()

	h := newHosted(plugin("house", on("ask", phases.PrePolicy, askingHost, phases.KindNoop)))
	h.plugin("house").Grants.See = nil
	eng, log := recorded(t, h)
	turn := phases.Context{WorkspaceID: "w", TurnID: "1", Now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	outcome(t)(eng.Dispatch(t.Context(), turn, &phases.PrePolicyInput{UserText: phases.T("my secret"), Model: "m"}))
	got := log.of(runtime.ExchangeDispatch)
	if len(got) != 1 {
		t.Fatalf("%d exchanges", len(got))
	}
	x := got[0]
	in, ok := x.Dispatch.Input.(*phases.PrePolicyInput)
	if !ok || in.UserText != (phases.Text{Withheld: true, Chars: 9}) || !slices.Contains(x.Dispatch.Withheld, "user_text") {
		t.Errorf("what was withheld is in the record: %+v, %v", in, x.Dispatch.Withheld)
	}
	if x.Subscription != "house.ask" || x.Plugin != "house" || x.Version == "" || x.SHA256 != "in_process" || x.Start != 1 || x.Generation != 1 ||
		x.Dispatch.Context.TurnID != "1" || x.Dispatch.Remaining <= 0 || x.TookMS <= 0 || x.Begin.IsZero() || x.Err != nil {
		t.Errorf("exchange %+v", x)
	}
	// The answer is the plugin's, though all of it was refused: the kind is not declared.
	if section, ok := x.Result.Contributions[0].(*phases.PromptSection); !ok || section.Content != "forbidden" && section.Content != "unavailable" {
		t.Errorf("result %+v", x.Result.Contributions[0])
	}
	if len(x.HostCalls) != 2 || x.HostCalls[0].Service != "state" || x.HostCalls[0].Err != nil || string(x.HostCalls[0].Params) != `{"value":1,"session_id":"s"}` ||
		x.HostCalls[1].Service != "vault" || x.HostCalls[1].Err == nil {
		t.Errorf("host calls %+v", x.HostCalls)
	}
}

// TestExchangeOfLateCall: also what a plugin asks its host after its call was abandoned is recorded.
func TestExchangeOfLateCall(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	late := func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		<-release
		_, err := c.Host.Call(context.WithoutCancel(ctx), "state", "get", json.RawMessage(`{"session_id":"s"}`))
		return nil, err
	}
	h := newHosted(plugin("house", on("late", phases.PreTools, late, phases.KindNoop))).override("house.late", phases.Override{Timeout: new(phases.Duration(20 * time.Millisecond))})
	eng, log := recorded(t, h)
	outcome(t)(eng.Dispatch(t.Context(), phases.Context{}, &phases.PreToolsInput{}))
	if got := log.of(runtime.ExchangeDispatch); len(got) != 1 || got[0].Err == nil || got[0].Err.Code != phases.CauseTimeout || got[0].Result != nil {
		t.Fatalf("exchanges %+v", got)
	}
	// What it asks after its call was left is told alone.
	close(release)
	waitFor(t, func() bool { return len(log.of(runtime.ExchangeHost)) == 1 })
	if x := log.of(runtime.ExchangeHost)[0]; x.Subscription != "house.late" || x.Plugin != "house" || len(x.HostCalls) != 1 || x.HostCalls[0].Service != "state" {
		t.Errorf("host exchange %+v", x)
	}
}

// waitFor waits until something holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("it does not come")
		}
	}
}

// TestExchangeOfStart: the configuration is there without its secrets.
func TestExchangeOfStart(t *testing.T) {
	t.Parallel()

	cfg, err := config.Loader{LookupEnv: func(name string) (string, bool) { return "hush-hush", name == "TOKEN" }}.Parse([]byte(
		"version: 1\nplugins:\n  - name: house\n    builtin: house\n    grants: {host: [state]}\n    config: {token: '${TOKEN}', list: [{a/b: '${TOKEN}'}], n: 1.50}\n"), "grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var seen string
	p := plugin("house", section("rules", "house_rules", "Be brief."))
	p.ConfigSchema = json.RawMessage(`{"type":"object"}`)
	p.OnConfigure = func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
		seen = string(c.Config)
		return sdk.Setup{}, nil
	}
	h := newHosted(p)
	h.cfg = *cfg
	_, log := recorded(t, h)
	got := log.of(runtime.ExchangeConfigure)
	if len(got) != 1 || got[0].Err != nil || got[0].Description == nil || got[0].Description.Name != "house" || got[0].Start != 1 {
		t.Fatalf("exchanges %+v", got)
	}
	want := &runtime.ExchangeConfiguration{
		Instance: "house", Config: json.RawMessage(`{"list":[{"a/b":"***"}],"n":1.50,"token":"***"}`), Services: []string{"state"},
		Secrets: map[string]string{"/token": "TOKEN", "/list/0/a~1b": "TOKEN"},
	}
	checkSame(t, "configuration", got[0].Configuration, want)
	if strings.Count(seen, "hush-hush") != 2 {
		t.Errorf("the plugin saw %s", seen)
	}
	filled, err := config.Filled(want.Config, want.Secrets, func(string, string) (string, error) { return "hush-hush", nil })
	if err != nil || string(filled) != seen {
		t.Errorf("filled %s, %v; want %s", filled, err, seen)
	}
}

// TestExchangeTrouble: a record that cannot be kept is told once and changes nothing.
func TestExchangeTrouble(t *testing.T) {
	t.Parallel()

	for name, answer := range map[string]func(*runtime.Exchange) error{
		"error": func(*runtime.Exchange) error { return errors.New("no space left on device") },
		"panic": func(*runtime.Exchange) error { panic("no space left on device") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var told journal
			h := newHosted(plugin("house", section("rules", "house_rules", "Be brief.")))
			h.opts.OnExchange = answer
			h.opts.OnEvent = func(e runtime.Event) {
				if e.Kind == runtime.EventDiagnostic {
					told.add(e.Code + " " + e.State + ": " + e.Detail)
				}
			}
			eng := h.start(t)
			for range 3 {
				if out, err := eng.Dispatch(t.Context(), phases.Context{}, &phases.PrePromptCompileInput{}); err != nil || len(out.Merged.Sections) != 1 {
					t.Errorf("outcome %+v, %v", out, err)
				}
			}
			if got := told.all(); len(got) != 1 || !strings.HasPrefix(got[0], "not_recorded"+" error: ") || !strings.Contains(got[0], "no space left") {
				t.Errorf("events %q", got)
			}
		})
	}
}

func TestReplayFailures(t *testing.T) {
	t.Parallel()

	p := plugin("house", on("deaf", phases.PrePolicy, taking(time.Hour), phases.KindNoop))
	p.Tools = []sdk.Tool{{Tool: phases.Tool{Name: "look", Description: "Looks."}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
		panic("no")
	}}}
	eng := newHosted(p).start(t)
	dispatch := func(remaining time.Duration) *runtime.Exchange {
		return &runtime.Exchange{Kind: runtime.ExchangeDispatch, Plugin: "house", Dispatch: &phases.Dispatch{
			Hook: "deaf", Subscription: "house.deaf", Phase: phases.PrePolicy, Input: &phases.PrePolicyInput{}, Remaining: remaining,
		}}
	}
	got, err := eng.Replay(t.Context(), dispatch(10*time.Millisecond))
	if err != nil || got.Err == nil || got.Err.Code != phases.CauseTimeout || got.Result != nil {
		t.Errorf("a deaf hook: %+v, %v", got, err)
	}
	got, err = eng.Replay(t.Context(), &runtime.Exchange{Kind: runtime.ExchangeTool, Plugin: "house", ToolCall: &phases.ToolCall{Tool: "look"}})
	if err != nil || got.Err == nil || got.Err.PluginCode != "panic" || got.ToolResult != nil {
		t.Errorf("a panic: %+v, %v", got, err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		ctx  context.Context
		x    *runtime.Exchange
		want string
	}{
		"another plugin": {t.Context(), &runtime.Exchange{Kind: runtime.ExchangeTool, Plugin: "hause", ToolCall: &phases.ToolCall{}}, `did you mean "house"`},
		"another kind":   {t.Context(), &runtime.Exchange{Kind: runtime.ExchangeHost, Plugin: "house"}, `of the kind "host"`},
		"nothing sent":   {t.Context(), &runtime.Exchange{Kind: runtime.ExchangeTool, Plugin: "house"}, `of the kind "tool"`},
		"a caller left":  {left, dispatch(time.Hour), "context canceled"},
	} {
		if _, err := eng.Replay(tt.ctx, tt.x); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}
