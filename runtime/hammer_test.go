package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// moody is a plugin whose hooks answer, fail, hang, ignore their deadline or
// panic, by chance.
func moody(name string, release <-chan struct{}) *sdk.Plugin {
	mood := func(content phases.Contribution) handler {
		return func(ctx context.Context, c *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
			switch rand.IntN(12) {
			case 0:
				return nil, sdk.Fail("mood", "not now")
			case 1:
				panic("mood")
			case 2:
				<-ctx.Done()
				return nil, ctx.Err()
			case 3:
				if rand.IntN(8) == 0 {
					return deaf(release)(ctx, c, in)
				}
			case 4:
				return []phases.Contribution{content, content, nil}, nil
			}
			return sdk.Reply(content)
		}
	}
	section := &phases.PromptSection{SectionID: name, Title: name, Content: "text of " + name}
	text := on("text", phases.PrePromptCompile, mood(section), phases.KindPromptSection)
	guard := on("guard", phases.ToolPreCall, mood(&phases.Decision{Verdict: phases.VerdictAllow}), phases.KindDecision)
	policy := on("policy", phases.PrePolicy, mood(&phases.Policy{Common: phases.Common{Domain: "d"}, Key: "shared", Value: raw(`"` + name + `"`)}), phases.KindPolicy)
	watch := on("watch", phases.PostTurn, mood(&phases.Noop{}))
	hooks := []sdk.Hook{text, guard, policy, watch}
	for i := range hooks {
		hooks[i].Timeout = 5 * ms
	}
	return plugin(name, hooks...)
}

// TestHammer runs turns, tools, compilations, reloads and the end of the engine
// at the same time, over plugins that do as they please. The race detector and
// the bounds are the judges.
func TestHammer(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var plugins []*sdk.Plugin
	for i := range 8 {
		plugins = append(plugins, moody(fmt.Sprintf("p%d", i), release))
	}
	h := newHosted(plugins...)
	h.cfg.Budgets.Turn.Time = phases.Duration(time.Second)
	eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
	if err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := range 25 {
				if err := hammerTurn(t.Context(), eng, fmt.Sprintf("%d-%d", worker, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Go(func() {
		for i := range 10 {
			cfg := h.reloaded(func(next *hosted) { next.plugin(fmt.Sprintf("p%d", i%8)).Limits.Concurrency = 8 + i })
			if err := eng.Reload(t.Context(), cfg); err != nil && !errors.Is(err, runtime.ErrClosed) {
				t.Errorf("reload %d: %v", i, err)
			}
		}
	})
	workers.Wait()
	if out := dispatch(t, eng, &phases.PrePromptCompileInput{}); len(out.Runs) != 8 {
		t.Errorf("%d runs", len(out.Runs))
	}
	// The end comes while others are still at it.
	for worker := range 4 {
		workers.Go(func() {
			for i := range 25 {
				if err := hammerTurn(t.Context(), eng, fmt.Sprintf("end-%d-%d", worker, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// Plugins that are deaf may hold all their slots until the test is over: what
	// waits for them in the background is then given up, and told.
	if err := eng.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	workers.Wait()
}

// hammerTurn is one turn. A phase may fail closed, and the engine may be closed;
// anything else is an error.
func hammerTurn(ctx context.Context, eng *runtime.Engine, id string) error {
	if rand.IntN(4) == 0 { // some callers leave
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(4000))*time.Microsecond)
		defer cancel()
	}
	turn, err := eng.BeginTurn(ctx, phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: id, SessionID: "s"})
	if err != nil {
		return unexpected(err)
	}
	_, err = turn.Dispatch(ctx, &phases.PrePolicyInput{})
	errs := []error{unexpected(err)}
	var tools sync.WaitGroup
	found := make([]error, 3)
	for i := range found {
		tools.Go(func() {
			_, err := turn.Dispatch(ctx, &phases.ToolPreCallInput{Tool: "x", Arguments: raw(`{}`)})
			found[i] = unexpected(err)
		})
	}
	_, err = turn.Compile(ctx, runtime.CompileInput{UserText: id})
	errs = append(errs, unexpected(err))
	tools.Wait()
	_, err = turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded})
	return errors.Join(append(append(errs, found...), unexpected(err))...)
}

// unexpected drops the errors that a bad day brings.
func unexpected(err error) error {
	if _, failed := errors.AsType[*runtime.PhaseError](err); failed || errors.Is(err, runtime.ErrClosed) {
		return nil
	}
	if code := phases.CodeOf(err); code == phases.CauseTimeout || code == phases.CauseCancelled {
		return nil
	}
	return err
}
