//go:build unix

package runtime_test

import (
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
	}
}

func floodIsCounted(t *testing.T, b *processBench, eng *runtime.Engine, _ *phases.Outcome) {
	t.Helper()
	closeEngine(t, eng) // what is left of the flood is told at the end
	lines := 0
	b.await(t, "dropped lines", func(e runtime.Event) bool {
		logged := e.Kind == runtime.EventLog && e.Plugin == "bad"
		if logged {
			lines++
		}
		return logged && strings.HasPrefix(e.Detail, "dropped ")
	})
	if lines > 2000 {
		t.Errorf("%d of 20,000 lines came through", lines)
	}
}
