//go:build linux

package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/latency"
	"github.com/grapnelhq/grapnel/runtime"
)

// Options say how long a run is.
type Options struct {
	// Dispatches is how many; 0 is a million.
	Dispatches uint64
	// Plugins is how many there are, every third of them bad; 0 is 20.
	Plugins int
	// Seed of what is declared and called.
	Seed uint64
	// For ends the run earlier; 0 does not.
	For time.Duration
	// Callers is how many call at once; 0 is 16.
	Callers int
	// Self are program and arguments that start [Plugin].
	Self []string
	// Progress takes a line every few seconds; nil discards.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	o.Dispatches, o.Plugins, o.Callers = cmp.Or(o.Dispatches, 1_000_000), cmp.Or(o.Plugins, 20), cmp.Or(o.Callers, 16)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}

// closeTime bounds Close: far more than it may take.
const closeTime = time.Minute

// warmUp is how many dispatches fill what an engine keeps for the next ones,
// before the first count.
const warmUp = 500

// run is one run of the engine.
type run struct {
	o       Options
	begin   time.Time
	engine  *runtime.Engine
	declare *declarer
	report  *Report

	// next numbers the dispatches; limit and until end a stretch.
	next, limit atomic.Uint64
	reloads     atomic.Uint64
	until       time.Time
	took        latency.Histogram

	mu     sync.Mutex
	runs   map[string]uint64
	events map[string]uint64
	// disturbed are the first good hooks that were not served.
	disturbed      []string
	disturbedCount uint64
	slowest        time.Duration
}

// Run runs an engine and reports. An error is one of the run itself; what the
// engine did wrong is in Report.Problems. It starts processes of Options.Self, and
// needs /proc.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	r := &run{
		o: o, begin: time.Now(), declare: newDeclarer(o), runs: map[string]uint64{}, events: map[string]uint64{},
		report: &Report{Seed: o.Seed, Plugins: o.Plugins},
	}
	if err := r.sample(ctx, "before", 0); err != nil {
		return nil, err
	}
	var err error
	if r.engine, err = runtime.New(ctx, r.declare.calm(), runtime.Options{OnEvent: r.note}); err != nil {
		return nil, err
	}
	err = r.stretches(ctx)
	if closed := r.close(ctx); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	r.summarize()
	return r.report, nil
}

// stretches are a short one with good plugins only, and then an even number of
// those that count.
func (r *run) stretches(ctx context.Context) error {
	r.limit.Store(min(warmUp, r.o.Dispatches))
	r.call(ctx)
	if err := r.steady(ctx, "start"); err != nil {
		return err
	}
	r.begin = time.Now()
	n := 2 * max(1, r.o.Dispatches/200_000)
	for i := uint64(1); i <= n; i++ {
		r.limit.Store(max(r.limit.Load(), r.o.Dispatches*i/n))
		if r.o.For > 0 {
			r.until = r.begin.Add(r.o.For * time.Duration(i) / time.Duration(n)) //nolint:gosec // a handful
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
func (r *run) stretch(ctx context.Context) {
	calling, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { r.reload(calling) })
	wait.Go(func() { r.progress(calling) })
	r.call(ctx)
	stop()
	wait.Wait()
}

// done is how many dispatches have begun.
func (r *run) done() uint64 { return min(r.next.Load(), r.limit.Load()) }

// steady puts good plugins in force, waits until nothing of the others is left,
// and counts.
func (r *run) steady(ctx context.Context, at string) error {
	if err := r.engine.Reload(ctx, r.declare.calm()); err != nil {
		return fmt.Errorf("a configuration of good plugins: %w", err)
	}
	for _, row := range r.engine.Plugins() {
		if row.State != "ready" {
			r.report.problemf("at %s the good plugin %s is %s: %s", at, row.Plugin, row.State, row.Message+" "+row.Detail)
		}
	}
	return r.sample(ctx, at, r.o.Plugins)
}

func (r *run) sample(ctx context.Context, at string, processes int) error {
	s, err := settled(ctx, processes)
	if err != nil {
		return err
	}
	s.At, s.Dispatches, s.Seconds = at, r.done(), time.Since(r.begin).Seconds()
	r.report.Samples = append(r.report.Samples, s)
	return nil
}

// reloadEvery is after how many dispatches another configuration is put in force.
const reloadEvery = 1000

// reload puts configurations in force over the callers' heads.
func (r *run) reload(ctx context.Context) {
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

func (r *run) reloadOnce(ctx context.Context) {
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
		r.report.Refused++ // one that misbehaves did so at its start: what was in force stays
	case ctx.Err() == nil:
		r.report.problemf("reload: %v", err)
	}
}

// progress says every few seconds how far it is.
func (r *run) progress(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for last := r.done(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s, err := count()
		if err != nil {
			continue // the samples will tell
		}
		now := r.done()
		r.mu.Lock()
		disturbed := r.disturbedCount
		r.mu.Unlock()
		_, _ = fmt.Fprintf(r.o.Progress, "%d of %d dispatches, %d/s, %d reloads; heap %s, resident %s, %d descriptors, %d goroutines, %d processes; %d good hooks disturbed\n",
			now, r.o.Dispatches, (now-last)/5, r.reloads.Load(), mib(s.HeapBytes), mib(s.RSSBytes), s.Descriptors, s.Goroutines, s.Processes, disturbed)
		last = now
	}
}

// close closes the engine and counts what is left.
func (r *run) close(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	begin := time.Now()
	if err := r.engine.Close(bounded); err != nil {
		r.report.problemf("Close: %v", err)
	}
	r.report.CloseMS = millis(time.Since(begin))
	return r.sample(ctx, "closed", 0)
}

// summarize adds up and judges.
func (r *run) summarize() {
	s := r.took.Snapshot()
	r.report.DispatchMS = [3]float64{millis(s.Quantile(0.5)), millis(s.Quantile(0.99)), millis(s.Max())}
	r.report.Runs, r.report.Events, r.report.Reloads = r.runs, r.events, r.reloads.Load()
	if r.disturbedCount > 0 {
		r.report.problemf("%d hooks of good plugins were not served, the first: %s", r.disturbedCount, strings.Join(r.disturbed, "; "))
	}
	r.report.judge()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
