//go:build unix

package runtime_test

import (
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestExchangeOfProcess records a process that dies in each call: each start has its
// number, and a repeated call waits for the next one.
func TestExchangeOfProcess(t *testing.T) {
	b := newBench(t)
	log := &exchangeLog{}
	cfg := patient(bad(t, "bad", "crash"))
	eng := b.startWith(t, cfg, runtime.Options{OnExchange: log.note})
	outcome(t)(eng.Dispatch(t.Context(), phases.Context{TurnID: "1"}, &phases.PrePromptCompileInput{}))
	calls := log.of(runtime.ExchangeDispatch)
	if len(calls) != 1 || calls[0].Err == nil || calls[0].Err.Code != phases.CauseCrash || calls[0].Start != 1 || len(calls[0].SHA256) != 64 {
		t.Fatalf("exchanges %+v", calls)
	}
	for range 2 {
		now, err := eng.Replay(t.Context(), &calls[0])
		if err != nil || now.Err == nil || now.Err.Code != phases.CauseCrash {
			t.Errorf("again %+v, %v", now, err)
		}
	}
	b.awaitState(t, "bad", phases.PluginReady, 3)
	var starts []uint64
	for _, x := range log.of(runtime.ExchangeConfigure) {
		starts = append(starts, x.Start)
		if x.Configuration == nil || x.Configuration.Instance != "bad" || x.Description == nil || x.Err != nil {
			t.Errorf("start %+v", x)
		}
	}
	if len(starts) < 3 || starts[0] != 1 || starts[1] != 2 || starts[2] != 3 {
		t.Errorf("starts %v", starts)
	}
}
