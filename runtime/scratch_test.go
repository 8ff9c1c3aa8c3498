package runtime_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
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

// TestLateAnswersReachNobody: what an abandoned call brings after all is not another call's answer.
func TestLateAnswersReachNobody(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	late := section("late", "late", "")
	late.Timeout = 20 * time.Millisecond
	late.PrePromptCompile = func(_ context.Context, c *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		if c.Context.TurnID == "blocked" {
			<-release
		}
		return sdk.Reply(&phases.PromptSection{SectionID: "late", Content: "of " + c.Context.TurnID})
	}
	eng := newHosted(plugin("house", late)).start(t)
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "blocked", Mode: phases.ModeAgent}
	for range 2 {
		if out, err := eng.Dispatch(t.Context(), turn, &phases.PrePromptCompileInput{}); err != nil || len(out.Merged.Sections) != 0 {
			t.Fatalf("%v %+v", err, out)
		}
	}
	for i := range 50 {
		if i == 25 {
			close(release)
		}
		turn.TurnID = strconv.Itoa(i)
		out, err := eng.Dispatch(t.Context(), turn, &phases.PrePromptCompileInput{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Merged.Sections { // none where the machine was too busy
			if s.Content != "of "+turn.TurnID {
				t.Errorf("turn %d got the answer %q", i, s.Content)
			}
		}
	}
}
