package adk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestFailsBeforeTheModel: a turn fails if ADK cannot build its request.
func TestFailsBeforeTheModel(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	root := made[agent.Agent](t)(llmagent.New(llmagent.Config{Name: "root", Model: says(text("never")), Instruction: "Greet {nobody}."}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if p.err == nil || p.end.Status != phases.TurnFailed {
		t.Errorf("%v, status %s", p.err, p.end.Status)
	}
}

// TestErrorCode: a response without content is the provider's failure, not an answer.
func TestErrorCode(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	root := speaker(t, "root", says(&model.LLMResponse{ErrorCode: "SAFETY", ErrorMessage: "blocked by the provider"}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if p.end.Status != phases.TurnProviderFailure || !strings.Contains(p.end.Error.Text, "blocked by the provider") {
		t.Errorf("%v, the end %+v", p.err, p.end)
	}
}

// TestRecovered: another plugin's answer in place of a failed model's is the answer.
func TestRecovered(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	fails := speaks(func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		yield(nil, errors.New("overloaded"))
	})
	other := made[*plugin.Plugin](t)(plugin.New(plugin.Config{Name: "other", OnModelErrorCallback: func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) { return text("sorry"), nil }}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, speaker(t, "root", fails), loop.Options{}, other))
	if p.err != nil || p.end.Status != phases.TurnSucceeded || p.end.AssistantText.Text != "sorry" {
		t.Errorf("%v, the end %+v", p.err, p.end)
	}
}

// TestUsageOfPieces: usage that comes in pieces is reported once, also where the stream breaks off.
func TestUsageOfPieces(t *testing.T) {
	t.Parallel()

	piece := func(s string, in int32) *model.LLMResponse {
		r := used(text(s), in)
		r.Partial = true
		return r
	}
	for name, c := range map[string]struct {
		m    speaks
		want int
	}{
		"two whole responses": {func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
			_ = yield(used(text("one"), 10), nil) && yield(used(text("two"), 12), nil)
		}, 12},
		"only in a piece": {func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
			_ = yield(piece("on", 10), nil) && yield(piece("e", 12), nil) && yield(text("one"), nil)
		}, 12},
		"broken off": {func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
			_ = yield(piece("on", 10), nil) && yield(nil, errors.New("reset"))
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := looptest.Start(t)
			p := play(t, t.Context(), s, newRunner(t, s.Engine, speaker(t, "root", c.m), loop.Options{}))
			if got := s.Usage(); len(got) != 1 || got[0].InputTokens != c.want || p.end.Usage.InputTokens != c.want {
				t.Errorf("usage %+v, the end has %+v", got, p.end.Usage)
			}
		})
	}
}

// full is a sink that keeps nothing of what was used.
type full struct{}

func (full) Append(_ context.Context, m *manifest.Manifest, _ []manifest.Text) error {
	return manifest.Seal(m, nil, nil)
}
func (full) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil } //nolint:nilnil // there is none
func (full) Report(context.Context, manifest.Usage) error                     { return errors.New("the disk is full") }

// TestUsageIsLost: a run does not fail when its usage cannot be stored.
func TestUsageIsLost(t *testing.T) {
	t.Parallel()

	eng := looptest.Host(t, full{}, &sdk.Plugin{Name: "p", Version: "1.0.0"})
	r := newRunner(t, eng, speaker(t, "root", says(used(text("done"), 10))), loop.Options{})
	if p := say(t.Context(), r, "s", "hello"); p.err != nil {
		t.Error(p.err)
	}
}

// TestAfterTheEnd: what a tool has left behind makes no calls once its run is over.
func TestAfterTheEnd(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	var left agent.Context
	leaves := made[tool.Tool](t)(functiontool.New(functiontool.Config{Name: "plain", Description: "Leaves."}, func(ctx agent.Context, _ map[string]any) (map[string]any, error) {
		left = ctx
		return nil, nil //nolint:nilnil // it has no result
	}))
	guard := newGuard(t, s.Engine, loop.Options{})
	play(t, t.Context(), s, runnerOf(t, speaker(t, "root", says(asks(nil, "plain 1"), text("done")), leaves), session.InMemoryService(), guard))
	if answer, err := guard.BeforeToolCallback()(left, leaves, map[string]any{}); answer != nil || err == nil || !strings.Contains(err.Error(), "did not begin") {
		t.Errorf("answer %v, %v", answer, err)
	}
	guard.AfterRunCallback()(left)
	if _, err := guard.BeforeModelCallback()(left, &model.LLMRequest{}); err == nil {
		t.Error("a prompt after the end")
	}
}

// TestCancelledWithAResult: a run that ends while the plugins look at a result ends as interrupted.
func TestCancelledWithAResult(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan *phases.PostTurnInput, 1)
	eng := looptest.Host(t, nil, &sdk.Plugin{
		Name: "p", Version: "1.0.0",
		Hooks: []sdk.Hook{
			{Name: "see", Kinds: []phases.Kind{phases.KindNoop}, ToolPostCall: func(ctx context.Context, _ *sdk.Call, _ *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}},
			{Name: "end", Kinds: []phases.Kind{phases.KindNoop}, PostTurn: func(_ context.Context, _ *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
				ended <- in
				return nil, nil
			}},
		},
	})
	r := newRunner(t, eng, speaker(t, "root", says(asks(nil, "plain 1"), text("never")), repeats(t, "plain")), loop.Options{})
	failed := say(ctx, r, "s", "hello").err
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}
	if end := <-ended; !errors.Is(failed, context.Canceled) || end.Status != phases.TurnInterrupted || len(end.ToolEvents) != 1 {
		t.Errorf("%v, the end %+v", failed, end)
	}
}
