package runtime_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

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
