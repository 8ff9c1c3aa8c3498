package jobqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/schema"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// hostTurns takes turns until it is killed, and prints each that has ended with all of
// its work queued.
func hostTurns(ctx context.Context, dsn, path string) error {
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{Schema: schema.Current(), LockTimeout: time.Minute})
	if err != nil {
		return err
	}
	q, err := jobqueue.Open(db, toughOptions())
	if err != nil {
		return err
	}
	eng, err := newToughEngine(ctx, q, path)
	if err != nil {
		return err
	}
	for n, failures := 0, 0; ; n++ {
		id := fmt.Sprintf("%d-%d", os.Getpid(), n)
		if err := turnOf(ctx, eng, id); err == nil {
			failures = 0
			fmt.Println(id)
		} else if failures++; failures > 20 { // a busy machine lets a deadline pass now and then
			return err
		}
		if n%10 == 9 { // the queue has its bounds
			if err := eng.WaitBackground(ctx); err != nil {
				return err
			}
		}
	}
}

func turnOf(ctx context.Context, eng *runtime.Engine, id string) error {
	turn, err := eng.BeginTurn(ctx, phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: id, Mode: phases.ModeAgent})
	if err != nil {
		return err
	}
	asked, askErr := turn.PrePolicy(ctx, &phases.PrePolicyInput{})
	ended, endErr := turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded})
	return errors.Join(askErr, untaken(asked), endErr, untaken(ended))
}

// untaken is an error if the outcome says that the queue has refused something.
func untaken(out *phases.Outcome) error {
	if out == nil {
		return nil
	}
	for _, run := range out.Runs {
		if run.Stage == phases.RoleObserve && run.State != phases.StateQueued {
			return fmt.Errorf("%s: %s (%s)", run.Subscription, run.State, run.Code)
		}
	}
	for _, d := range out.Diagnostics {
		if d.Code == phases.CodeJobRefused {
			return errors.New(d.Message)
		}
	}
	return nil
}

// newToughEngine is an engine with a plugin that has two observing hooks and two
// tools for jobs. Of each, one may be repeated. What they do is to write a line.
func newToughEngine(ctx context.Context, q jobs.Queue, path string) (*runtime.Engine, error) {
	do := func(what string, c phases.Context) error {
		err := note(path, what+" "+c.TurnID+"\n")
		<-time.After(rand.N(50 * time.Millisecond)) // work takes a while
		return err
	}
	observe := func(name string, idempotent bool) sdk.Hook {
		return sdk.Hook{Name: name, Phase: phases.PostTurn, Idempotent: idempotent, Any: func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			return nil, do(name, c.Context)
		}}
	}
	plugin := &sdk.Plugin{
		Name: "p", Version: "1.0.0",
		Hooks: []sdk.Hook{
			{Name: "ask", Phase: phases.PrePolicy, Kinds: []phases.Kind{phases.KindBackgroundJob}, Any: func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				return []phases.Contribution{
					&phases.BackgroundJob{JobKind: "keyed", IdempotencyKey: c.Context.TurnID}, &phases.BackgroundJob{JobKind: "plain"},
				}, nil
			}},
			observe("idempotent", true), observe("once", false),
		},
	}
	for _, name := range []string{"keyed", "plain"} {
		plugin.Tools = append(plugin.Tools, sdk.Tool{Tool: phases.Tool{Name: name, Description: "does something"}, Call: func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
			return &phases.ToolResult{}, do(name, c.Context)
		}})
	}
	all := []string{"*"}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "p", Grants: phases.Grants{Contribute: all, See: all, Domains: all, Tools: all}}}}
	return runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"p": plugin}, Queue: q})
}
