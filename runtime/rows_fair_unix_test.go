//go:build unix

package runtime_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// fairnessRows are plugins that would have more than their share of a phase: of
// its time, its order, its input, or its rules.
func fairnessRows() []rowCase {
	alone := []string{"good"}
	return []rowCase{
		{row: 31, mode: "slow", change: quick, start: "ready", run: "timed_out timeout", sections: alone, then: stillUp},
		{row: 35, mode: "good", name: "condition", start: "ready", run: "failed condition", sections: alone, change: func(p *config.Plugin) {
			p.Subscriptions = map[string]phases.Override{"bad.h": {When: new(`input.sections[5] == "x"`)}}
		}},
		{row: 29, name: "clock-jumps", test: rowClockJumps},
		{row: 38, name: "copies", test: rowCopies},
	}
}

// rowClockJumps is row 29: a clock that jumps by days, either way, ends no call, no
// wait and no process.
func rowClockJumps(t *testing.T, b *processBench) {
	t.Helper()
	var reads atomic.Int64
	jumping := func() time.Time {
		n := reads.Add(1)
		return time.Now().Round(0).Add(time.Duration(n%3-1) * 48 * time.Hour)
	}
	eng := b.startWith(t, patient(bad(t, "bad", "good"), bad(t, "good", "good")), runtime.Options{
		Now: jumping, Health: runtime.Health{Interval: 10 * time.Millisecond},
	})
	for range 30 {
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkGood(t, eng, out)
		if got := runOf(t, out, "bad.h"); got.State != phases.StateSucceeded || got.DurationMS < 0 || got.DurationMS > 10_000 {
			t.Errorf("run = %+v", got)
		}
		stillUp(t, b, eng, out)
	}
	if reads.Load() < 30 {
		t.Errorf("the clock was read %d times", reads.Load())
	}
}

// rowCopies is row 38: whatever a plugin inside the host does with what it was given, others see what the host gave, and
// so does the host. Plugins in processes have copies anyway.
func rowCopies(t *testing.T, _ *processBench) {
	t.Helper()
	given := func() (phases.Context, *phases.PrePromptCompileInput) {
		c := host()
		c.Flags, c.Metadata = map[string]bool{"on": true}, map[string]json.RawMessage{"m": raw(`"value"`)}
		return c, &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: []string{"t1", "t2"}, Sections: []string{"s"}}
	}
	h := newHosted(vandal(), witness()).override("witness.h", phases.Override{After: &[]string{"vandal.h"}})
	c, in := given()
	out := outcome(t)(h.start(t).Dispatch(t.Context(), c, in))
	wantContext, wantInput := given()
	checkSame(t, "the host's own context", c, wantContext)
	checkSame(t, "the host's own input", in, wantInput)
	const want = `{"flags":{"on":true},"input":{"tool_calling":true,"available_tools":["t1","t2"],"sections":["s"]},"metadata":{"m":"value"},"thread":"t"}`
	if got := contentOf(out, "witness"); got != want {
		t.Errorf("the witness saw %s; %v", got, states(out))
	}
}
