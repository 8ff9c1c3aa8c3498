//go:build unix

package runtime_test

import (
	"context"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// stoppingRows are plugins at the end of their process, or of the host's.
func stoppingRows() []rowCase {
	return []rowCase{
		{row: 39, name: "stubborn", long: true, test: rowStubborn, modes: []string{"stubborn"}},
	}
}

// rowStubborn is row 39: a plugin that works, does not listen and does not end
// is gone when Close returns, in a bounded time.
func rowStubborn(t *testing.T, b *processBench) {
	t.Helper()
	p := bad(t, "bad", "stubborn")
	p.Subscriptions = map[string]phases.Override{"bad.h": {Timeout: new(phases.Duration(generous))}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{p, bad(t, "good", "good")}}
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: budget(generous)}
	cfg.Budgets.Turn.Time = phases.Duration(2 * generous)
	eng := b.startWith(t, cfg, runtime.Options{})
	var call sync.WaitGroup
	var out *phases.Outcome
	call.Go(func() {
		out, _ = eng.Dispatch(context.WithoutCancel(t.Context()), host(), &phases.PrePromptCompileInput{})
	})
	b.awaitLine(t, "bad", "ready")
	closeEngine(t, eng)
	call.Wait()
	if run := runOf(t, out, "bad.h"); run.State == phases.StateSucceeded || run.State == phases.StateTimedOut {
		t.Errorf("run = %+v", run)
	}
}
