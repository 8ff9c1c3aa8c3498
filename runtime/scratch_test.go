package runtime_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestOutcomesStay: what a dispatch returns is not in the memory that later ones use.
func TestOutcomesStay(t *testing.T) {
	t.Parallel()

	cached := section("cached", "b", "kept")
	cached.Cache = &phases.Cache{}
	cut := section("cut", "c", strings.Repeat("long ", 100))
	cut.Budget.Chars = 60
	eng := newHosted(plugin("house", section("text", "a", "plain"), cached, cut)).start(t)
	var all sync.WaitGroup
	for caller := range 4 {
		all.Go(func() {
			var first []byte
			var out *phases.Outcome
			for i := range 100 {
				turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: strconv.Itoa(caller), Mode: phases.ModeAgent}
				next, err := eng.Dispatch(t.Context(), turn, &phases.PrePromptCompileInput{})
				if err != nil || len(next.Merged.Sections) != 3 {
					t.Errorf("%v %+v", err, next)
					return
				}
				if i == 0 {
					out, first = next, asJSON(t, next)
				}
			}
			if now := asJSON(t, out); string(now) != string(first) {
				t.Errorf("an outcome changed from\n%s\nto\n%s", first, now)
			}
		})
	}
	all.Wait()
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()

	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return b
}
