package bench

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// BenchmarkBreakerOpen reports what a hook adds to a dispatch whose breaker is
// open: the median difference to a dispatch without it, of batches that take
// turns. Both engines have the same two plugins inside the host, one of which
// answers; the hook of the other one is of another phase where it is not wanted.
//
//	go test -run '^$' -bench BreakerOpen -benchtime 300x ./internal/tests/bench
func BenchmarkBreakerOpen(b *testing.B) {
	without, with := breakerEngine(b, false), breakerEngine(b, true)
	ask := func(eng *runtime.Engine) (*phases.Outcome, error) {
		return eng.Dispatch(context.Background(), phases.Context{TurnID: "1", Mode: phases.ModeAgent}, &phases.PrePromptCompileInput{})
	}
	plain := func() error { _, err := ask(without); return err }
	refused := 0
	open := func() error {
		out, err := ask(with)
		if err == nil && out.Runs[len(out.Runs)-1].Code == string(phases.CauseBreakerOpen) {
			refused++
		}
		return err
	}
	spread(b, 1, batch, plain)
	spread(b, 1, batch, open) // the first five open it
	if refused < batch/2 {
		b.Fatalf("%d of %d calls were refused", refused, batch)
	}
	var more []float64
	b.ResetTimer()
	for range b.N {
		base := timed(b, 1, plain)
		more = append(more, float64(timed(b, 1, open)-base)/float64(batch*time.Microsecond))
	}
	b.ReportMetric(median(more), "more-µs")
	b.ReportMetric(more[int(0.99*float64(len(more)-1))], "more-p99-µs")
	b.ReportMetric(0, "ns/op") // a batch of both: not a time of anything
}

// breakerEngine has a plugin that answers, and one that never does so validly, in
// the same phase if wanted.
func breakerEngine(b *testing.B, wanted bool) *runtime.Engine {
	b.Helper()
	hook := func(phase phases.Phase, stability phases.Stability) []sdk.Hook {
		return []sdk.Hook{{
			Name: "h", Phase: phase, Kinds: []phases.Kind{phases.KindPromptSection},
			Any: func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptSection{SectionID: "s", Title: "s", Content: "x", Stability: stability})
			},
		}}
	}
	bad := phases.RuntimePreContext
	if wanted {
		bad = phases.PrePromptCompile
	}
	grants := phases.Grants{Contribute: []string{"*"}, Sections: []string{"*"}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "a", Grants: grants}, {Name: "z", Grants: grants}}}
	inside := map[string]runtime.Plugin{
		"a": &sdk.Plugin{Name: "a", Version: "1", Hooks: hook(phases.PrePromptCompile, phases.StabilityDynamic)},
		"z": &sdk.Plugin{Name: "z", Version: "1", Hooks: hook(bad, "shaky")},
	}
	return start(b, cfg, runtime.Options{InProcess: inside})
}

// BenchmarkCrashLoop reports how long a dispatch to one plugin takes while another
// one crashes again and again, beside a dispatch without that: as ratios of p50 and
// p99. Calls of both take turns.
//
// One of two engines has the second plugin, so that the machine is the same for both. The plugin is released whenever it
// is put into quarantine, so that it never stops looping; its backoff is the ordinary one.
//
//	go test -run '^$' -bench CrashLoop -benchtime 20000x ./internal/tests/bench
func BenchmarkCrashLoop(b *testing.B) {
	text := payload(1 << 10)
	calm, loop := startEngine(b, 1), loopEngine(b)
	without, with := dispatch(calm, text, 1), dispatch(loop.Engine, text, 1)
	var base, beside []time.Duration
	b.ResetTimer()
	for i := range b.N {
		if i%2 == 0 { // neither is always the second one
			base = append(base, timedCall(b, without))
		}
		beside = append(beside, timedCall(b, with))
		if i%2 == 1 {
			base = append(base, timedCall(b, without))
		}
	}
	loop.report(b, beside, base)
}

// looping is an engine with a plugin that crashes again and again, because it is released from each quarantine.
type looping struct {
	*runtime.Engine

	crashes atomic.Int64
	news    chan struct{}
}

func loopEngine(b *testing.B) *looping {
	b.Helper()
	cfg := engineConfig(b, 2)
	cfg.Plugins[1].Name, cfg.Plugins[1].Args = "looper", []string{loopMode}
	l := &looping{news: make(chan struct{}, 1)}
	eng, err := runtime.New(b.Context(), cfg, runtime.Options{OnEvent: l.note, Random: func() float64 { return 1 }}) // the shortest waits
	if err != nil {
		b.Fatal(err)
	}
	l.Engine = eng
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-l.news:
				freed(l.Engine, "looper") // it may have left by itself
			case <-stop:
				return
			}
		}
	}()
	b.Cleanup(func() {
		close(stop)
		<-done
		closeEngine(b, eng)
	})
	return l
}

// note counts crashes, and asks for the release of what is put into quarantine.
func (l *looping) note(e runtime.Event) {
	if e.Kind != runtime.EventPlugin || e.Plugin != "looper" {
		return
	}
	if e.Code == string(phases.CauseCrash) {
		l.crashes.Add(1)
	}
	if e.State == string(phases.PluginQuarantined) {
		l.news <- struct{}{} // has room: there is one quarantine at a time
	}
}

// freed releases a plugin, if there is something to release it from, and does not wait
// for its start.
func freed(e *runtime.Engine, plugin string) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = e.Release(ctx, plugin)
}

// report compares calls beside the looper with others.
func (l *looping) report(b *testing.B, beside, base []time.Duration) {
	b.Helper()
	quantiles(b, "beside-", beside)
	quantiles(b, "alone-", base)
	at := func(took []time.Duration, q float64) float64 { return float64(took[int(q*float64(len(took)-1))]) }
	b.ReportMetric(at(beside, 0.5)/at(base, 0.5), "x-p50")
	b.ReportMetric(at(beside, 0.99)/at(base, 0.99), "x-p99")
	b.ReportMetric(float64(l.crashes.Load()), "crashes")
}
