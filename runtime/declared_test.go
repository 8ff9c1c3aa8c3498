package runtime_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// down returns a guard of tool calls that cannot start.
func down() *sdk.Plugin {
	p := plugin("house", on("guard", phases.ToolPreCall, reply(deny("no")), phases.KindDecision))
	onStart(p, func(context.Context) error { return sdk.Fail("down", "it cannot start") })
	return p
}

// TestDeclaredIsExpected: what a plugin that never started may have decided is denied, in each phase in which it might
// have, unless the operator has said otherwise.
func TestDeclaredIsExpected(t *testing.T) {
	t.Parallel()

	deciding := []phases.Phase{phases.PrePolicy, phases.PostPromptCompile, phases.ToolPreCall}
	for _, tt := range []struct {
		name   string
		grants []string
		change func(h *hosted)
		closed []phases.Phase // the phases that fail
		open   []phases.Phase // the phases that go on with a mark
	}{
		{name: "decision", grants: []string{"decision"}, closed: deciding, open: []phases.Phase{phases.PreEnd}},
		{name: "everything", grants: []string{"*"}, closed: append(slices.Clone(deciding), phases.ToolPostCall), open: []phases.Phase{phases.PreEnd}},
		{name: "rewrite", grants: []string{"rewrite"}, closed: []phases.Phase{phases.ToolPreCall, phases.ToolPostCall}},
		{name: "neither", grants: []string{"prompt_section", "reminder"}},
		{
			name: "fail_open", grants: []string{"decision"}, change: func(h *hosted) { h.plugin("house").OnFailure = config.FailOpen },
			open: append(slices.Clone(deciding), phases.PreEnd),
		},
		{
			name: "a declared guard stands for its phase", grants: []string{"decision"},
			change: func(h *hosted) {
				h.override("house.guard", phases.Override{Phase: new(phases.ToolPreCall), When: new(`tool.name == "Bash"`)})
			},
			closed: []phases.Phase{phases.PrePolicy, phases.PostPromptCompile}, open: []phases.Phase{phases.PreEnd},
		},
		{
			name: "a declared guard fails closed by default", grants: []string{"decision"},
			change: func(h *hosted) { h.override("house.guard", phases.Override{Phase: new(phases.ToolPreCall)}) },
			closed: deciding, open: []phases.Phase{phases.PreEnd},
		},
		{
			name: "only what is declared", grants: []string{"decision"},
			change: func(h *hosted) {
				h.override("house.guard", phases.Override{Phase: new(phases.ToolPreCall)}).plugin("house").OnFailure = config.FailOpen
			},
			closed: []phases.Phase{phases.ToolPreCall}, open: []phases.Phase{phases.PrePolicy, phases.PostPromptCompile, phases.PreEnd},
		},
		{
			name: "what is declared and does not judge is no guard", grants: []string{"decision"},
			change: func(h *hosted) {
				h.override("house.log", phases.Override{Phase: new(phases.ToolPreCall), Role: new(phases.RoleObserve)})
				h.override("house.off", phases.Override{Phase: new(phases.ToolPreCall), Enabled: new(false)})
				h.override("house.shadow", phases.Override{Phase: new(phases.ToolPreCall), Shadow: new(true)})
			},
			closed: deciding, open: []phases.Phase{phases.PreEnd},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := newHosted(down())
			h.plugin("house").Grants.Contribute = tt.grants
			if tt.change != nil {
				tt.change(h)
			}
			eng := h.start(t)
			var closed, open []phases.Phase
			for _, row := range phases.Standard().Rows() {
				if row.Queue {
					continue
				}
				out, err := eng.Dispatch(t.Context(), host(), inputOf(t, row.Phase))
				switch {
				case err != nil:
					closed = append(closed, row.Phase)
					if row.Decides() && out.Decision.Verdict != phases.VerdictDeny || len(out.Runs) == 0 || out.Runs[0].State != phases.StateUnavailable {
						t.Errorf("%s: decision %+v, runs %+v", row.Phase, out.Decision, out.Runs)
					}
				case (len(out.Runs) == 0) == slices.ContainsFunc(row.Kinds, func(k phases.Kind) bool { return phases.Allows(tt.grants, string(k)) }):
					t.Errorf("%s: runs %+v", row.Phase, out.Runs)
				case slices.ContainsFunc(out.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == phases.CodeFailOpen }):
					open = append(open, row.Phase)
				}
			}
			checkSame(t, "phases that failed", closed, tt.closed)
			checkSame(t, "phases with a mark", open, tt.open)
		})
	}
}

// TestColdStart: a call that comes while the guard starts waits for it, and is judged by it; after three quarters of the
// phase's time it is denied, and what is up has judged too.
func TestColdStart(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		starts time.Duration
		took   time.Duration
		want   []string
	}{
		{"in time", 600 * time.Millisecond, 600 * time.Millisecond, []string{"house.guard denied denied", "up.h succeeded"}},
		{"too late", 3 * time.Second, 750 * time.Millisecond, []string{"house.any:tool.pre_call unavailable unavailable", "up.h succeeded"}}, //nolint:dupword // a state and its code
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				slow := onStart(down(), func(context.Context) error { time.Sleep(tt.starts); return nil })
				h := newHosted(slow, plugin("up", on("h", phases.ToolPreCall, reply(allow()), phases.KindDecision)))
				h.opts.WaitFor = runtime.WaitRequired
				eng := h.start(t)
				synctest.Wait() // the other one is up
				begin := time.Now()
				out, _ := eng.Dispatch(t.Context(), host(), &phases.ToolPreCallInput{Tool: "Bash"})
				if took := time.Since(begin); took != tt.took {
					t.Errorf("it took %v", took)
				}
				if out.Decision == nil || out.Decision.Verdict != phases.VerdictDeny {
					t.Errorf("decision = %+v", out.Decision)
				}
				checkSame(t, "ledger", sorted(states(out)), tt.want)
				time.Sleep(tt.starts)
			})
		})
	}
}

// TestEveryHookHasOneRow: whatever fails, blocks, is off or is not up, each hook of the phases up to the prompt has one
// row in the records of the turn, and each diagnostic there has a code.
func TestEveryHookHasOneRow(t *testing.T) {
	t.Parallel()

	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 36))
		h, hooks := randomHooks(rng)
		sink := &memorySink{}
		h.opts.Sink = sink
		eng := h.start(t)
		if randomTurn(t, rng, eng) {
			maps.DeleteFunc(hooks, func(_ string, p phases.Phase) bool { return p == phases.PostPreflight }) // for want of a plan
		}
		rows := map[string][]string{}
		for _, m := range sink.records {
			for _, run := range m.Runs {
				rows[run.Subscription] = append(rows[run.Subscription], string(run.State)+" "+run.Code)
			}
			for _, d := range m.Diagnostics {
				if d.Code == "" {
					t.Errorf("seed %d: a diagnostic without a code: %+v", seed, d)
				}
			}
		}
		for id := range hooks {
			if len(rows[id]) != 1 || rows[id][0] == " " {
				t.Errorf("seed %d: %s has the rows %q", seed, id, rows[id])
			}
		}
	}
}

// randomTurn compiles a turn, which the caller may have cancelled or the host may have had judged before. It reports
// whether it ended before it was compiled.
func randomTurn(t *testing.T, rng *rand.Rand, eng *runtime.Engine) (early bool) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turn, err := eng.BeginTurn(ctx, host())
	if err != nil {
		t.Fatal(err)
	}
	if rng.IntN(8) == 0 {
		cancel()
	}
	end := &phases.PostTurnInput{}
	if rng.IntN(3) == 0 {
		out, err := turn.Dispatch(ctx, &phases.PrePolicyInput{})
		early = err != nil || out.Decision != nil && out.Decision.Verdict != phases.VerdictAllow
	}
	if !early {
		_, err = turn.Compile(ctx, runtime.CompileInput{RecallPlan: raw("{}")})
	}
	if early || err != nil {
		end.Status = phases.TurnBlocked
	}
	outcome(t)(turn.End(t.Context(), end))
	return early
}

// randomHooks is a host of three plugins with hooks of the phases up to the prompt, of which many do something else than
// to go well, and the phases of these hooks by id. One of the plugins may be down.
func randomHooks(rng *rand.Rand) (*hosted, map[string]phases.Phase) {
	list := []phases.Phase{phases.PrePolicy, phases.PrePromptContext, phases.PostPreflight, phases.PreTools, phases.PrePromptCompile, phases.PostPromptCompile}
	plugins, hooks := []*sdk.Plugin{plugin("a"), plugin("b"), plugin("c")}, map[string]phases.Phase{}
	h := newHosted(plugins...)
	if rng.IntN(3) == 0 {
		plugins[2].OnConfigure = down().OnConfigure
		for _, phase := range list {
			hooks["c.any:"+string(phase)] = phase
			h.phase(phase, config.PhaseBudget{Time: phases.Duration(20 * ms)})
		}
	}
	for n := range 12 {
		hook := on(fmt.Sprintf("h%d", n), list[rng.IntN(len(list))], reply())
		row, _ := phases.Standard().Lookup(hook.Phase)
		switch rng.IntN(4) {
		case 0:
			hook.Any, hook.OnFailure = failing(sdk.Fail("x", "x")), word([]phases.FailureWord{phases.BestEffort, phases.FailClosed}[rng.IntN(2)])
		case 1:
			if row.Decides() {
				hook.Kinds, hook.Any = []phases.Kind{phases.KindDecision}, reply([]phases.Contribution{deny("no"), ask("may it?"), allow()}[rng.IntN(3)])
			}
		}
		hook.Role = []phases.Role{"", "", phases.RoleObserve}[rng.IntN(3)]
		hook.Shadow = rng.IntN(6) == 0
		hook.When = []string{"", "", `turn.mode == "none"`}[rng.IntN(3)]
		p := plugins[rng.IntN(3)]
		if p.Hooks = append(p.Hooks, hook); p.OnConfigure == nil {
			hooks[p.Name+"."+hook.Name] = hook.Phase
		}
	}
	return h, hooks
}
