//go:build unix

package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// resourceRows are plugins that use up what they share with others.
func resourceRows() []rowCase {
	both := []string{"bad", "good"}
	return []rowCase{
		{row: 9, mode: "flood-err", start: "ready", run: "succeeded", sections: both, then: floodIsCounted},
		{row: 10, mode: "flood-out", start: "ready", run: "succeeded", sections: both, then: stillUp},
		{row: 16, name: "leaks", test: rowLeaks},
	}
}

// rowLeaks is row 16: a plugin that leaks with each call is replaced after so many
// of them, so that it never holds more than those have leaked; no call fails.
func rowLeaks(t *testing.T, b *processBench) {
	t.Helper()
	p := bad(t, "leaky", "leak")
	p.Limits.Recycle.Calls = 5
	eng := b.start(t, p)
	const rounds = 4
	most := 0
	for round := range rounds {
		for range p.Limits.Recycle.Calls {
			out := dispatch(t, eng, &phases.PrePromptCompileInput{})
			checkGood(t, eng, out)
			var descriptors, goroutines int
			if _, err := fmt.Sscan(contentOf(out, "bad"), &descriptors, &goroutines); err != nil {
				t.Fatalf("%v: %v", err, states(out))
			}
			most = max(most, descriptors, goroutines)
		}
		b.await(t, "another process", recycled("leaky", round+1))
	}
	if most < 50 || most > 150 { // ten a call; without an end it would be 200 and more
		t.Errorf("the plugin held %d", most)
	}
	if row := rowOf(t, eng, "leaky"); row.Restarts != 0 || row.Recycled < rounds {
		t.Errorf("plugin = %+v", row)
	}
}

func floodIsCounted(t *testing.T, b *processBench, eng *runtime.Engine, _ *phases.Outcome) {
	t.Helper()
	closeEngine(t, eng) // what is left of the flood is told at the end
	b.await(t, "dropped lines", func(e runtime.Event) bool {
		return e.Kind == runtime.EventLog && e.Plugin == "bad" && strings.HasPrefix(e.Detail, "dropped ")
	})
	if n := len(b.logged("bad")); n > 2000 {
		t.Errorf("%d of 20,000 lines came through", n)
	}
}
