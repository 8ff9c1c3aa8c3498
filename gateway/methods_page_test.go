package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// fakeJobs has two dead jobs. The command's tests have real ones.
type fakeJobs struct{ gone []int64 }

func (f *fakeJobs) Counts(context.Context) (jobs.Counts, error) {
	return jobs.Counts{Dead: 2 - len(f.gone)}, nil
}

func (f *fakeJobs) List(_ context.Context, state string, after int64, limit int) ([]Job, error) {
	var list []Job
	for _, id := range []int64{1, 2} {
		if id > after && (state == "" || state == "dead") && len(list) < limit && !slices.Contains(f.gone, id) {
			list = append(list, Job{ID: id, State: "dead"})
		}
	}
	return list, nil
}

func (f *fakeJobs) Retry(_ context.Context, ids ...int64) ([]int64, error) { return f.take(ids), nil }

func (f *fakeJobs) Remove(_ context.Context, ids ...int64) ([]int64, error) { return f.take(ids), nil }

func (f *fakeJobs) take(ids []int64) (done []int64) {
	for _, id := range ids {
		if id <= 2 && !slices.Contains(f.gone, id) {
			done = append(done, id)
		}
	}
	f.gone = append(f.gone, done...)
	return done
}

// fakeMemories remembers one thing of the user.
type fakeMemories struct{}

func (fakeMemories) List(_ context.Context, workspace string, f MemoryFilter, _ string, _ int) ([]Memory, string, error) {
	return []Memory{{ID: "m1", Workspace: workspace, Scope: f.Scope, Text: "lives in Lisbon"}}, "", nil
}

func (fakeMemories) Search(_ context.Context, workspace, query string, _ int) ([]Memory, error) {
	score := 1.0
	return []Memory{{ID: "m1", Workspace: workspace, Text: query, Score: &score}}, nil
}

func (fakeMemories) Forget(_ context.Context, _ string, ids []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id != "m1" }), nil
}

// TestEventsRing: the last events are remembered in order, and those that are many are not.
func TestEventsRing(t *testing.T) {
	t.Parallel()

	var e Events
	for i := range mostEvents + 3 {
		e.Observe(runtime.Event{Kind: runtime.EventRun, Code: "a run"})
		e.Observe(runtime.Event{Kind: runtime.EventPlugin, State: string(phases.PluginReady), Code: strings.Repeat("x", i)})
	}
	e.watchers.mu.Lock()
	defer e.watchers.mu.Unlock()
	for i, ev := range e.recent {
		if len(ev.Code) != i+3 || len(e.recent) != mostEvents {
			t.Fatalf("the event %d is of the %d-th, %d are remembered", i, len(ev.Code), len(e.recent))
		}
	}
}
