package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

func hasCode(list []phases.Diagnostic, code string) bool {
	return slices.ContainsFunc(list, func(d phases.Diagnostic) bool { return d.Code == code })
}

// atEnd is a hook that decides and reminds at the end of a turn.
func atEnd(name string, h handler) sdk.Hook {
	return on(name, phases.PreEnd, h, phases.KindDecision, phases.KindReminder)
}

// finished begins a turn with one prompt.
func finished(t *testing.T, h *hosted) *runtime.Turn {
	t.Helper()
	turn := begin(t, h.start(t))
	prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
	return turn
}

// TestPreEnd: who makes a turn go on, why, and what follows from failures.
func TestPreEnd(t *testing.T) {
	t.Parallel()

	ill := failing(errors.New("ill"))
	closed := phases.Override{OnFailure: &phases.OnFailure{Default: phases.FailClosed}}
	tests := []struct {
		name   string
		hooks  []sdk.Hook
		change func(h *hosted)
		reason string // empty if the turn may end
		failed string // the code of the phase's failure
		note   string // a diagnostic's code
	}{
		{name: "nobody minds", hooks: []sdk.Hook{atEnd("a", reply())}},
		{name: "no hooks"},
		{name: "allowed", hooks: []sdk.Hook{atEnd("a", reply(allow()))}},
		{name: "an ask", hooks: []sdk.Hook{atEnd("a", reply(ask("sure?")))}},
		{name: "two reasons", hooks: []sdk.Hook{atEnd("a", reply(deny("one"))), atEnd("b", reply(allow())), atEnd("c", reply(deny("two")))}, reason: "one\n\ntwo"},
		{name: "no reason", hooks: []sdk.Hook{atEnd("a", reply(deny("")))}, reason: "The turn must not end yet. Go on."},
		{name: "failed", hooks: []sdk.Hook{atEnd("a", ill)}, note: phases.CodeFailOpen},
		{name: "one failed, one denies", hooks: []sdk.Hook{atEnd("a", ill), atEnd("b", reply(deny("one")))}, reason: "one", note: phases.CodeFailOpen},
		{name: "too slow", hooks: []sdk.Hook{atEnd("a", taking(time.Minute, deny("one")))}, note: phases.CodeFailOpen, change: func(h *hosted) {
			h.override("p.a", phases.Override{Timeout: new(phases.Duration(time.Millisecond))})
		}},
		{name: "failed closed", hooks: []sdk.Hook{atEnd("a", ill), atEnd("b", reply(deny("one")))}, failed: "plugin_error", change: func(h *hosted) { h.override("p.a", closed) }},
		{name: "required", hooks: []sdk.Hook{atEnd("a", ill), atEnd("b", reply(deny("one")))}, failed: "required_missing", note: phases.CodeFailOpen, change: func(h *hosted) {
			h.phase(phases.PreEnd, config.PhaseBudget{Require: []string{"p.a"}})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := newHosted(plugin("p", tt.hooks...))
			if tt.change != nil {
				tt.change(h)
			}
			end, err := finished(t, h).PreEnd(t.Context(), &phases.PreEndInput{})
			if string(phases.CodeOf(err)) != tt.failed {
				t.Fatalf("error %v", err)
			}
			if end.GoOn != (tt.reason != "") || end.Reason != tt.reason {
				t.Errorf("go on %v: %q", end.GoOn, end.Reason)
			}
			if d := end.Outcome.Decision; !end.GoOn && d != nil && d.Verdict == phases.VerdictDeny {
				t.Error("the outcome denies the end")
			}
			if tt.note != "" && !hasCode(end.Outcome.Diagnostics, tt.note) {
				t.Errorf("diagnostics %+v", end.Outcome.Diagnostics)
			}
		})
	}
}

// TestPreEndInput: hooks see what they may, and the engine's count in place of the host's.
func TestPreEndInput(t *testing.T) {
	t.Parallel()

	type seen struct {
		input    phases.PreEndInput
		withheld string
	}
	var got []seen
	h := newHosted(plugin("p", atEnd("a", func(_ context.Context, c *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		end, ok := in.(*phases.PreEndInput)
		if !ok {
			return nil, errors.New("another input")
		}
		got = append(got, seen{*end, strings.Join(c.Withheld, " ")})
		return sdk.Reply(deny("one"))
	})))
	h.plugin("p").Grants.See = []string{"forced", "open_tasks"}
	eng := h.start(t)
	turn := begin(t, eng)
	outcome(t)(turn.Dispatch(t.Context(), &phases.RuntimePreContextInput{})) // counts as a prompt
	in := &phases.PreEndInput{Text: phases.T("hello"), OpenTasks: []string{"tests"}, Forced: 7}
	for range 2 {
		outcome(t)(turn.Dispatch(t.Context(), in))
	}
	if out := dispatch(t, eng, in); out.Decision.Verdict != phases.VerdictDeny {
		t.Errorf("outside of a turn: %+v", out.Decision)
	}
	in.Forced = 8
	if out := dispatch(t, eng, in); !hasCode(out.Diagnostics, phases.CodeForcedEnough) {
		t.Errorf("outside of a turn: %+v", out.Diagnostics)
	}
	for i, forced := range []int{0, 1, 7, 8} {
		if g := got[i]; g.input.Forced != forced || g.withheld != "text" || g.input.Text != (phases.Text{Withheld: true, Chars: 5}) || !slices.Equal(g.input.OpenTasks, in.OpenTasks) {
			t.Errorf("call %d: %+v", i, g)
		}
	}
}

// TestEndUnjudged: a host that does not ask whether its turn may end, or ends it although a hook has denied that, is told
// so, in the outcome and the record of the turn that succeeded.
func TestEndUnjudged(t *testing.T) {
	t.Parallel()

	ask := func(t *testing.T, turn *runtime.Turn) {
		if _, err := turn.PreEnd(t.Context(), &phases.PreEndInput{Text: phases.T("done")}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		compiled bool
		asks     int
		status   phases.TurnStatus
		want     string
	}{
		"not asked":           {compiled: true, want: "phase_skipped"},
		"denied":              {compiled: true, asks: 1, want: "deny_ignored p.a"},
		"allowed behind that": {compiled: true, asks: 2},
		"interrupted":         {compiled: true, asks: 1, status: phases.TurnInterrupted},
		"without a prompt":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sink, calls := &memorySink{}, 0
			h := newHosted(plugin("p", atEnd("a", func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
				if calls++; calls == 1 {
					return sdk.Reply(deny("one"))
				}
				return nil, nil
			})))
			h.opts.Sink = sink
			turn := begin(t, h.start(t))
			if tt.compiled {
				compileOnce(t.Context(), turn)
				_ = turn.ReportRequest(nil)
			}
			for range tt.asks {
				ask(t, turn)
			}
			out := outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{Status: tt.status}))
			if got := strings.Join(codes(out), " "); got != tt.want {
				t.Errorf("End says %q, want %q", got, tt.want)
			}
			if m := sink.last("w", "t"); tt.want != "" && !slices.ContainsFunc(m.Diagnostics, func(d manifest.Diagnostic) bool { return strings.HasPrefix(tt.want, d.Code) }) {
				t.Errorf("the record has %+v", m.Diagnostics)
			}
		})
	}
}
