package jobqueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// TestEngine: observing hooks and background jobs go through the queue. An engine
// that is closed in the middle leaves the rest to the next one, and nothing is done
// twice or omitted.
func TestEngine(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		const turns = 12
		var finished journal
		// The first engine gets stuck in the middle of the jobs.
		stuck := make(chan struct{}, turns)
		first := newEngine(t, dsn, &finished, func(ctx context.Context, j jobs.Job) error {
			if n := len(finished.all()); n < turns/2 {
				return nil
			}
			stuck <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		want := map[string]int{}
		for n := range turns {
			turn := fmt.Sprint("turn-", n)
			takeTurn(t, first, turn)
			want["job of "+turn], want["end of "+turn] = 1, 1
		}
		<-stuck
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := first.Close(ctx); err == nil {
			t.Error("Close did not report that work was interrupted")
		}
		if len(finished.all()) == len(want) {
			t.Error("the first engine did everything: nothing was tested")
		}
		second := newEngine(t, dsn, &finished, func(context.Context, jobs.Job) error { return nil })
		await(t, "all turns", func() bool { return len(finished.all()) >= len(want) })
		if err := second.WaitBackground(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(finished.all(), want); diff != "" {
			t.Errorf("finished (-got +want):\n%s", diff)
		}
	})
}

// newEngine is an engine of its own process on a database, with a plugin that
// observes and asks for a job in each turn.
func newEngine(t *testing.T, dsn string, finished *journal, before func(context.Context, jobs.Job) error) *runtime.Engine {
	t.Helper()
	plugin := &sdk.Plugin{Name: "p", Version: "1.0.0", Hooks: []sdk.Hook{
		{Name: "ask", Phase: phases.PrePolicy, Kinds: []phases.Kind{phases.KindBackgroundJob}, Any: func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			payload, err := json.Marshal(c.Context.TurnID)
			return []phases.Contribution{&phases.BackgroundJob{JobKind: "k", Payload: payload, IdempotencyKey: c.Context.TurnID}}, err
		}},
		{Name: "end", Phase: phases.PostTurn, Any: func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			finished.add("end of " + c.Context.TurnID)
			return nil, nil
		}},
	}}
	all := []string{"*"}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "p", Grants: phases.Grants{Contribute: all, See: all, Domains: all}}}}
	eng, err := runtime.New(t.Context(), cfg, runtime.Options{
		InProcess: map[string]runtime.Plugin{"p": plugin},
		Queue:     open(t, dsn, jobqueue.Options{}),
		Jobs: map[string]func(context.Context, jobs.Job) error{"k": func(ctx context.Context, j jobs.Job) error {
			var turn string
			if err := json.Unmarshal(j.Payload, &turn); err != nil {
				return err
			}
			if err := before(ctx, j); err != nil {
				return err
			}
			finished.add("job of " + turn)
			return nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close(context.WithoutCancel(t.Context())) })
	return eng
}

// takeTurn runs a turn in which something is to be done in the background.
func takeTurn(t *testing.T, eng *runtime.Engine, id string) {
	t.Helper()
	turn, err := eng.BeginTurn(t.Context(), phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: id, Mode: phases.ModeAgent})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Dispatch(t.Context(), &phases.PrePolicyInput{}); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.End(t.Context(), &phases.PostTurnInput{Status: phases.TurnSucceeded}); err != nil {
		t.Fatal(err)
	}
}

// journal counts what was done.
type journal struct {
	mu    sync.Mutex
	lines map[string]int
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines == nil {
		j.lines = map[string]int{}
	}
	j.lines[line]++
}

func (j *journal) all() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.lines)
}

// TestEngineCollects: a caller that waits for background work learns how it ended, also
// if the queue has stored it meanwhile.
func TestEngineCollects(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		var finished journal
		eng := newEngine(t, dsn, &finished, func(context.Context, jobs.Job) error { return nil })
		ctx, wait := eng.Collect(t.Context())
		c := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
		for _, in := range []phases.Input{&phases.PrePolicyInput{}, &phases.PrePolicyInput{}, &phases.PostTurnInput{}} {
			if _, err := eng.Dispatch(ctx, c, in); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r.Subscription, " ", r.Kind, " ", r.State, " ", r.Attempts))
		}
		want := []string{"p.ask k succeeded 1", "p.end  succeeded 1"} // the same job again is no other one
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
