package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// judge starts an engine whose one plugin judges the end of turns.
func judge(t *testing.T, end sdk.Handler[*phases.PreEndInput]) *runtime.Engine {
	t.Helper()
	return looptest.Host(t, nil, &sdk.Plugin{
		Name: "judge", Version: "1.0.0", Hooks: []sdk.Hook{{Name: "end", Kinds: []phases.Kind{phases.KindDecision, phases.KindReminder}, PreEnd: end}},
	})
}

// TestGoOn: a host's loop goes on with the reason and the reminders, and then ends.
func TestGoOn(t *testing.T) {
	t.Parallel()

	eng := judge(t, func(_ context.Context, _ *sdk.Call, in *phases.PreEndInput) ([]phases.Contribution, error) {
		if len(in.OpenTasks) > 0 && in.Forced == 0 {
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "open: " + in.OpenTasks[0] + ", after " + in.Text.Value},
				&phases.Reminder{Type: "judge.hint", Text: "run the tests"})
		}
		return nil, nil
	})
	turn, err := loop.Begin(t.Context(), eng, looptest.Where(), loop.Options{Input: runtime.CompileInput{UserText: "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	var talk []string
	for reason := "hello"; reason != ""; {
		talk = append(talk, reason)
		p, err := turn.Prompt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		talk = append(talk, p.Reminders...)
		if reason, err = turn.GoOn(t.Context(), "done\x00", "the\xfftests"); err != nil {
			t.Fatal(err)
		}
	}
	if len(talk) != 3 || talk[1] != "open: the\ufffdtests, after done\ufffd" || !strings.Contains(talk[2], "run the tests") {
		t.Errorf("the model was sent %q", talk)
	}
	if err := turn.Done(t.Context(), "done", nil); err != nil {
		t.Error(err)
	}
}

// TestGoOnEnds: a turn does not end in the wrong order.
func TestGoOnEnds(t *testing.T) {
	t.Parallel()

	eng := judge(t, func(context.Context, *sdk.Call, *phases.PreEndInput) ([]phases.Contribution, error) { return nil, nil })
	turn, err := loop.Begin(t.Context(), eng, looptest.Where(), loop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turn.GoOn(t.Context(), ""); !errors.Is(err, runtime.ErrNothingCompiled) {
		t.Errorf("before a prompt: %v", err)
	}
	if _, err := turn.Prompt(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user left"))
	if _, err := turn.GoOn(gone, "done"); err == nil || err.Error() != "the user left" {
		t.Errorf("cancelled: %v", err)
	}
	if err := turn.Done(t.Context(), "done", nil); err != nil {
		t.Error(err)
	}
	if _, err := turn.GoOn(t.Context(), "done"); !errors.Is(err, runtime.ErrTurnEnded) {
		t.Errorf("after the end: %v", err)
	}
}
