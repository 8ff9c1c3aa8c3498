package runtime

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// slow fails its first start, for which a reload waits, and describes itself when it
// is released.
type slow struct {
	Plugin
	starts      atomic.Int32
	release     chan struct{}
	description phases.Description
}

func (s *slow) Describe(context.Context) (*phases.Description, error) { return &s.description, nil }

func (s *slow) Configure(ctx context.Context, _ *phases.Configuration) (*phases.Description, error) {
	if s.starts.Add(1) == 1 {
		return nil, phases.Errorf(phases.CauseUnavailable, "not yet")
	}
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return &s.description, ctx.Err()
}

func newSlow(name string, before ...string) *slow {
	hook := phases.Hook{Name: "h", Phase: phases.PrePromptCompile, Before: before}
	return &slow{release: make(chan struct{}), description: phases.Description{Name: name, Version: "1", Hooks: []phases.Hook{hook}}}
}

// TestDescribedBeforeInForce: between the plan of a generation and the moment
// that it is in force a plugin describes itself whose hooks do not fit. It goes
// into quarantine, and the innocent one after it still gets its hooks.
func TestDescribedBeforeInForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		culprit, innocent := newSlow("culprit", "culprit.x"), newSlow("innocent")
		cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "culprit"}, {Name: "innocent"}}}
		o := Options{WaitFor: WaitRequired, InProcess: map[string]Plugin{"culprit": culprit, "innocent": innocent}}
		e, err := New(t.Context(), &config.Config{Version: 1}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
		g, err := e.load(t.Context(), cfg, e.current.Load())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // they are being started again
		close(culprit.release)
		close(innocent.release)
		synctest.Wait()
		if !e.install(g) {
			t.Fatal("not installed")
		}
		e.refresh(g)
		synctest.Wait()

		rows := e.Plugins()
		if got, want := rows[0].State, phases.PluginQuarantined; got != want || rows[0].Code != string(phases.CauseInvalidReply) {
			t.Errorf("the culprit is %+v, want %s", rows[0], want)
		}
		if got, want := rows[1].State, phases.PluginReady; got != want {
			t.Errorf("the innocent one is %s, want %s", got, want)
		}
		if e.Descriptions()["culprit"] != nil {
			t.Error("the description that does not fit is still there")
		}
		planned := e.current.Load().planned.Load()
		if planned.plan.Subscription("innocent.h") == nil || planned.plan.Subscription("culprit.h") != nil {
			t.Error("the plan has the wrong hooks")
		}
	})
}
