package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGoodPlugin(t *testing.T) {
	t.Parallel()
	rec := newRecorder(t)
	host := &Host{Services: map[string]Service{"clock/now": Reply(`"noon"`), "clock/zone": Reply(`1`), "state/get": Reply(`1`)}}
	c := Case{
		Hook: "h", Config: `{"a":1}`, Context: phases.Context{Dir: "/x"}, MaxChars: 77, Host: host,
		Input:    &phases.PrePromptCompileInput{AvailableTools: []string{"b"}},
		Policies: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage(`2`)}},
	}
	got := Run(rec, echo(), c)
	rec.expect(t)
	want := Answer{Contributions: section(`{"a":1}clock,state echo.h /x "noon" [b] 2 77`)}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	// One call that was cancelled, two in process and two over the wire.
	if calls := host.Calls(); len(calls) != 5 || !cmp.Equal(calls[4], HostCall{"clock/now", json.RawMessage(`{}`)}) {
		t.Errorf("host calls are %v", calls)
	}
}

// TestRunEnds: the plugin is ended as a host would do it, so that what it has started
// for itself is no leak; and an end that fails is told.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	for _, fails := range []error{nil, errors.New("the file is gone")} {
		p := echo()
		stop, stopped := make(chan struct{}), make(chan struct{})
		configure, begin := p.OnConfigure, sync.OnceFunc(func() {
			go func() { <-stop; close(stopped) }()
		})
		p.OnConfigure = func(ctx context.Context, c *phases.Configuration) (sdk.Setup, error) {
			begin()
			return configure(ctx, c)
		}
		p.OnClose = func(context.Context) error {
			close(stop)
			<-stopped
			return fails
		}
		rec := newRecorder(t)
		Run(rec, p, Case{Tool: "t", Arguments: `{}`})
		if fails == nil {
			rec.expect(t)
		} else {
			rec.expect(t, "the plugin does not end: "+fails.Error())
		}
	}
}

// TestToolPolicies: a tool is told the turn's policies, in process and over the
// wire, and outside a turn that there is none.
func TestToolPolicies(t *testing.T) {
	t.Parallel()
	for outside, want := range map[bool]string{false: `"2 true false"`, true: `" false true"`} {
		rec := newRecorder(t)
		got := Run(rec, echo(), Case{
			Tool: "policy", OutsideTurn: outside, Policies: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage(`2`)}},
		})
		rec.expect(t)
		if string(got.Content) != want {
			t.Errorf("outside a turn %v: got %s, want %s", outside, got.Content, want)
		}
	}
}

func TestWantedError(t *testing.T) {
	t.Parallel()
	failing := plugin(answering(func() ([]phases.Contribution, error) {
		err := sdk.Fail("upstream_down", "try later")
		err.Retryable = true
		return nil, err
	}))
	rec := newRecorder(t)
	got := Run(rec, failing, Case{Hook: "h", WantCode: "upstream_down"})
	rec.expect(t)
	if diff := cmp.Diff(got, Answer{Error: &Failure{"upstream_down", "try later", true}}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

// TestBadPlugins holds the kit against plugins that each do one thing wrong.
func TestBadPlugins(t *testing.T) {
	t.Parallel()
	good := answering(func() ([]phases.Contribution, error) { return section("x"), nil })
	counting := func(use func(n int64) ([]phases.Contribution, error)) *sdk.Plugin {
		var n atomic.Int64
		return plugin(answering(func() ([]phases.Contribution, error) { return use(n.Add(1)) }))
	}
	shared := section("x")
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	hook := Case{Hook: "h", Patience: 300 * time.Millisecond} // what is not deaf answers within it on a busy machine
	change := func(set func(*Case)) Case {
		c := hook
		set(&c)
		return c
	}
	twoHooks := func(set func(*sdk.Hook)) *sdk.Plugin {
		p := plugin(good)
		set(&p.Hooks[0])
		return p
	}
	tests := []struct {
		name string
		p    *sdk.Plugin
		c    Case
		want []string
	}{
		{"invalid literal", &sdk.Plugin{Name: "p"}, hook, []string{"does not take its configuration: plugin \"p\": no version"}},
		{"no call", plugin(good), Case{}, []string{"names both a hook and a tool, or none"}},
		{"unknown hook", plugin(good), Case{Hook: "g"}, []string{`no hook "g", but ["h"]`}},
		{"unknown tool", plugin(good), Case{Tool: "g"}, []string{`no tool "g", but []`}},
		{"panic", plugin(answering(func() ([]phases.Contribution, error) { panic("oh no") })), hook, []string{"the handler panics: panic: oh no"}},
		{"error", plugin(answering(func() ([]phases.Contribution, error) { return nil, sdk.Fail("bad", "luck") })), hook, []string{`fails with the code "bad" (luck), want ""`}},
		{"no error", plugin(good), change(func(c *Case) { c.WantCode = "bad" }), []string{`succeeds, want the error "bad"`}},
		{
			"another answer each time", counting(func(n int64) ([]phases.Contribution, error) { return section(strconv.FormatInt(n, 10)), nil }), hook,
			[]string{"in process: the same call gives two answers", "over the wire: the same call gives two answers", "the answer is another over the wire"},
		},
		{
			"volatile", counting(func(n int64) ([]phases.Contribution, error) { return section(strconv.FormatInt(n, 10)), nil }),
			change(func(c *Case) { c.Volatile = "counts" }), nil,
		},
		{"memory that is shared", plugin(answering(func() ([]phases.Contribution, error) { return shared, nil })), hook, []string{"in process: contribution 0 of two answers is one value"}},
		{
			"kind that is not declared", twoHooks(func(h *sdk.Hook) { h.Kinds = nil }), hook,
			[]string{"contribution 0 is of the kind prompt_section, which the hook h does not declare"},
		},
		{
			"not well formed", plugin(answering(func() ([]phases.Contribution, error) { return []phases.Contribution{&phases.PromptSection{}}, nil })), hook,
			[]string{"contribution 0 is not well formed: prompt_section: section_id"},
		},
		{
			"kind of another phase", twoHooks(func(h *sdk.Hook) {
				h.PrePromptCompile = answering(func() ([]phases.Contribution, error) {
					return []phases.Contribution{&phases.Decision{Verdict: "deny"}}, nil
				})
			}), hook, []string{"does not declare in Kinds", "does not take decision"},
		},
		{
			"too many", plugin(answering(func() ([]phases.Contribution, error) {
				var many []phases.Contribution
				for range 257 {
					many = append(many, &phases.Noop{})
				}
				return many, nil
			})), hook, []string{"257 contributions; a host takes 256"},
		},
		{
			"text that the wire repairs", plugin(answering(func() ([]phases.Contribution, error) { return section("a\u202eb"), nil })), hook,
			[]string{"the answer is another over the wire"},
		},
		{
			"deaf to cancellation", plugin(answering(func() ([]phases.Contribution, error) { <-forever; return nil, nil })), hook,
			[]string{"does not return when its context ends", "goroutines of the plugin are left"},
		},
		{
			"leaves a goroutine", plugin(answering(func() ([]phases.Contribution, error) {
				go func() { <-forever }()
				return section("x"), nil
			})), hook, []string{"goroutines of the plugin are left"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rec := newRecorder(t)
			Run(rec, tt.p, tt.c)
			rec.expect(t, tt.want...)
		})
	}
}

func TestBadTool(t *testing.T) {
	t.Parallel()
	p := &sdk.Plugin{Name: "p", Version: "1", Tools: []sdk.Tool{{
		Tool: phases.Tool{Name: "t"},
		Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			return &phases.ToolResult{Content: json.RawMessage(strings.Repeat("[", 40) + strings.Repeat("]", 40))}, nil
		},
	}}}
	rec := newRecorder(t)
	Run(rec, p, Case{Tool: "t"})
	if len(rec.reports) == 0 || !strings.Contains(rec.reports[0], "the tool's content is JSON nested deeper than 32") {
		t.Errorf("reports are %q", rec.reports)
	}
}

// TestCustomPhase is of a hook in a host's own phase.
func TestCustomPhase(t *testing.T) {
	t.Parallel()
	p := &sdk.Plugin{Name: "p", Version: "1", Hooks: []sdk.Hook{{
		Name: "h", Phase: "x.acme.idle", Kinds: []phases.Kind{phases.KindReminder},
		Any: func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.Reminder{Type: "idle", Text: string(phases.PhaseOf(in))})
		},
	}}}
	rec := newRecorder(t)
	got := Run(rec, p, Case{Hook: "h"})
	rec.expect(t)
	if diff := cmp.Diff(got.Contributions, phases.Contributions{&phases.Reminder{Type: "idle", Text: "x.acme.idle"}}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
