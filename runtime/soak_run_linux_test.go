//go:build linux

package runtime_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/stats"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// soakOptions say how long a run is, and of what.
type soakOptions struct {
	dispatches uint64
	plugins    int           // every third of them misbehaves
	seed       uint64        // of what is declared and called
	limit      time.Duration // ends the run earlier, if positive
	callers    int           // how many call at once
	self       []string      // program and arguments that start this program again
	progress   io.Writer     // takes a line every few seconds
}

const (
	soakCloseTime = time.Minute // bounds Close
	warmUp        = 500         // dispatches that fill the engine's caches before the first count
	reloadEvery   = 1000        // dispatches between two configurations
)

type soakRun struct {
	o       soakOptions
	begin   time.Time
	engine  *runtime.Engine
	declare *declarer
	report  *soakReport

	// next numbers the dispatches; limit and until end a stretch.
	next, limit atomic.Uint64
	reloads     atomic.Uint64
	until       time.Time

	mu             sync.Mutex
	took           stats.Histogram
	runs, events   map[string]uint64
	disturbed      []string // the first good hooks that were not served
	disturbedCount uint64
}

// soak runs an engine; the report's problems are what the engine did wrong.
func soak(ctx context.Context, o soakOptions) (*soakReport, error) {
	r := &soakRun{
		o: o, begin: time.Now(), declare: newDeclarer(o), runs: map[string]uint64{}, events: map[string]uint64{},
		report: &soakReport{Seed: o.seed, Plugins: o.plugins},
	}
	if err := r.sample(ctx, "before", 0); err != nil {
		return nil, err
	}
	var err error
	if r.engine, err = runtime.New(ctx, r.declare.calm(), runtime.Options{OnEvent: r.note}); err != nil {
		return nil, err
	}
	err = r.stretches(ctx)
	err = cmp.Or(err, r.close(ctx))
	if err != nil {
		return nil, err
	}
	r.summarize()
	return r.report, nil
}

// stretches runs a short stretch with good plugins only, and then an even number of those that count.
func (r *soakRun) stretches(ctx context.Context) error {
	r.limit.Store(min(warmUp, r.o.dispatches))
	r.call(ctx)
	if err := r.steady(ctx, "start"); err != nil {
		return err
	}
	r.begin = time.Now()
	n := 2 * min(max(1, r.o.dispatches/200_000), 5)
	for i := uint64(1); i <= n; i++ {
		r.limit.Store(max(r.limit.Load(), r.o.dispatches*i/n))
		if r.o.limit > 0 {
			r.until = r.begin.Add(r.o.limit * time.Duration(i) / time.Duration(n))
		}
		r.stretch(ctx)
		if err := r.steady(ctx, strconv.FormatUint(r.done(), 10)); err != nil {
			return err
		}
	}
	r.report.Dispatches, r.report.Seconds = r.done(), time.Since(r.begin).Seconds()
	return nil
}

// stretch calls and reloads until the limit is reached.
func (r *soakRun) stretch(ctx context.Context) {
	calling, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { r.reload(calling) })
	wait.Go(func() { r.progress(calling) })
	r.call(ctx)
	stop()
	wait.Wait()
}

func (r *soakRun) done() uint64 { return min(r.next.Load(), r.limit.Load()) } // dispatches that have begun

// steady puts good plugins in force, waits until nothing of the others is left, and counts.
func (r *soakRun) steady(ctx context.Context, at string) error {
	if err := r.engine.Reload(ctx, r.declare.calm()); err != nil {
		return fmt.Errorf("a configuration of good plugins: %w", err)
	}
	for _, row := range r.engine.Plugins() {
		if row.State != "ready" {
			r.report.problemf("at %s the good plugin %s is %s: %s", at, row.Plugin, row.State, row.Message+" "+row.Detail)
		}
	}
	return r.sample(ctx, at, r.o.plugins)
}

func (r *soakRun) sample(ctx context.Context, at string, processes int) error {
	s, err := settled(ctx, processes)
	if err != nil {
		return err
	}
	s.At, s.Dispatches, s.Seconds = at, r.done(), time.Since(r.begin).Seconds()
	r.report.Samples = append(r.report.Samples, s)
	return nil
}

// reload puts configurations in force while callers dispatch.
func (r *soakRun) reload(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last := uint64(0); ; {
		if last == 0 || r.done()-last >= reloadEvery {
			last = r.done()
			r.reloadOnce(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *soakRun) reloadOnce(ctx context.Context) {
	if r.declare.rng.IntN(10) == 0 {
		if err := r.engine.Reload(ctx, r.declare.refused()); err == nil {
			r.report.problemf("a plugin that is declared twice was accepted")
		}
		r.report.Refused++
	}
	err := r.engine.Reload(ctx, r.declare.next())
	switch {
	case err == nil:
		r.reloads.Add(1)
	case errors.Is(err, runtime.ErrNotUp):
		r.report.Refused++ // a plugin misbehaved at its start: the old configuration stays
	case ctx.Err() == nil:
		r.report.problemf("reload: %v", err)
	}
}

// progress reports every few seconds.
func (r *soakRun) progress(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for last := r.done(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s, err := countHeld()
		if err != nil {
			continue
		}
		now := r.done()
		r.mu.Lock()
		disturbed := r.disturbedCount
		r.mu.Unlock()
		_, _ = fmt.Fprintf(r.o.progress, "%d of %d dispatches, %d/s, %d reloads; heap %s, resident %s, %d descriptors, %d goroutines, %d processes; %d good hooks disturbed\n",
			now, r.o.dispatches, (now-last)/5, r.reloads.Load(), mib(s.HeapBytes), mib(s.RSSBytes), s.Descriptors, s.Goroutines, s.Processes, disturbed)
		last = now
	}
}

// close closes the engine and counts what is left.
func (r *soakRun) close(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, soakCloseTime)
	defer cancel()
	begin := time.Now()
	if err := r.engine.Close(bounded); err != nil {
		r.report.problemf("Close: %v", err)
	}
	r.report.CloseMS = millis(time.Since(begin))
	return r.sample(ctx, "closed", 0)
}

// summarize adds up and checks.
func (r *soakRun) summarize() {
	s := &r.took
	r.report.DispatchMS = [3]float64{millis(s.Quantile(0.5)), millis(s.Quantile(0.99)), millis(s.Quantile(1))}
	r.report.Runs, r.report.Events, r.report.Reloads = r.runs, r.events, r.reloads.Load()
	if r.disturbedCount > 0 {
		r.report.problemf("%d hooks of good plugins were not served, the first: %s", r.disturbedCount, strings.Join(r.disturbed, "; "))
	}
	r.report.judge()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// call lets the callers call until the stretch ends, and waits for them.
func (r *soakRun) call(ctx context.Context) {
	var wait sync.WaitGroup
	for range r.o.callers {
		wait.Go(func() {
			seen := map[string]uint64{}
			for ctx.Err() == nil && (r.until.IsZero() || time.Now().Before(r.until)) {
				n := r.next.Add(1)
				if n > r.limit.Load() {
					break
				}
				r.dispatch(ctx, rand.New(rand.NewPCG(r.o.seed, n+1)), seen)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			for name, n := range seen {
				r.runs[name] += n
			}
		})
	}
	wait.Wait()
	r.next.Store(r.done()) // those who were too late have not called
}

// dispatch makes one call. A few callers abandon it.
func (r *soakRun) dispatch(ctx context.Context, rng *rand.Rand, seen map[string]uint64) {
	abandons := rng.IntN(50) == 0
	if abandons {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(5000))*time.Microsecond)
		defer cancel()
		ctx = bounded
	}
	begin := time.Now()
	out, err := r.dispatchOne(ctx, rng)
	took := time.Since(begin)
	r.mu.Lock()
	r.took.Record(took)
	r.mu.Unlock()
	if abandons || ctx.Err() != nil { // its hooks are cut short
		seen["(abandoned)"]++
		return
	}
	if _, failed := errors.AsType[*runtime.PhaseError](err); err != nil && !failed || out == nil {
		r.disturb("dispatch", fmt.Sprint(err))
		return
	}
	for i := range out.Runs {
		row := &out.Runs[i]
		seen[strings.TrimSpace(string(row.State)+" "+row.Code)]++
		if out.Phase == phases.PrePromptCompile && strings.HasPrefix(row.Plugin, "good") && row.State != phases.StateSucceeded {
			r.disturb(row.Subscription, fmt.Sprintf("%s %s", row.State, row.Code))
		}
	}
}

// dispatchOne dispatches a prompt, a tool call, or a prompt in a turn.
func (r *soakRun) dispatchOne(ctx context.Context, rng *rand.Rand) (*phases.Outcome, error) {
	c := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: strconv.FormatUint(rng.Uint64(), 10), Mode: phases.ModeAgent}
	prompt := &phases.PrePromptCompileInput{Sections: []string{strings.Repeat("s", rng.IntN(4096))}}
	switch n := rng.IntN(1000); {
	case n < 50:
		turn, err := r.engine.BeginTurn(ctx, phases.Context{WorkspaceID: c.WorkspaceID, ThreadID: c.ThreadID, TurnID: c.TurnID, Mode: c.Mode})
		if err != nil {
			return nil, err
		}
		out, err := turn.Dispatch(ctx, prompt)
		if _, ended := turn.End(ctx, &phases.PostTurnInput{}); err == nil {
			err = ended
		}
		return out, err
	case n < 300:
		return r.engine.Dispatch(ctx, c, &phases.ToolPreCallInput{Tool: "t", Arguments: arguments(rng.IntN(4096))})
	case n < 301: // more than a frame
		return r.engine.Dispatch(ctx, c, &phases.ToolPreCallInput{Tool: "t", Arguments: arguments(5 << 20)})
	}
	return r.engine.Dispatch(ctx, c, prompt)
}

func arguments(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("a", n) + `"`) }

// disturb records what should not have happened.
func (r *soakRun) disturb(what, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.disturbedCount++; len(r.disturbed) < 5 {
		r.disturbed = append(r.disturbed, what+": "+why)
	}
}

// note counts the engine's events but for those that the report counts elsewhere.
func (r *soakRun) note(e runtime.Event) {
	var name string
	switch e.Kind {
	case runtime.EventPlugin, runtime.EventBreaker, runtime.EventDropped, runtime.EventAbandoned:
		name = strings.Join(strings.Fields(string(e.Kind)+" "+e.State+" "+e.Code), " ")
	case runtime.EventLog:
		if e.Count == 0 {
			return
		}
		name = "log lines dropped"
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[name] += uint64(max(1, e.Count))
}
