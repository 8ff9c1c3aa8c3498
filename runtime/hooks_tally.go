package runtime

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/latency"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// tally counts the engine's events for [Engine.Overview]. It is the first consumer of
// the stream, and the only one that is always there: what it does for a run stands in
// the path of every dispatch, takes no lock and does not allocate. It finds what it
// counts by name, in maps that are replaced when a plan is made, so that an event of
// something that nobody expects any more finds nothing.
type tally struct {
	known atomic.Pointer[counted]
	// phases are those of the engine's table and do not change.
	phases                map[phases.Phase]*phaseFigures
	causes                map[phases.Cause]bool
	reloads, refusedLoads atomic.Uint64
	// changing is held by who replaces known.
	changing sync.Mutex
}

// counted is what there are figures of. The maps do not change.
type counted struct {
	hooks   map[string]*figures
	plugins map[string]*pluginFigures
}

// figures are those of one subscription, or of the tools or model calls of a plugin.
type figures struct {
	of     *pluginFigures
	phase  phases.Phase
	states [len(runStates)]atomic.Uint64
	inARow atomic.Uint64
	took   latency.Histogram

	failOpen, abandoned atomic.Uint64
	// left are the abandoned calls that have not come back; for a moment it may be
	// less, when a call comes back before it is counted as left.
	left atomic.Int64

	mu       sync.Mutex
	failures map[phases.Cause]uint64
	last     *LastError
}

// pluginFigures are those of one declared plugin.
type pluginFigures struct {
	name         string
	tools, model figures
	queued       latency.Histogram
	replies      sizes

	logLines, answers, abandoned atomic.Uint64

	mu   sync.Mutex
	cuts map[phases.Limit]uint64
	jobs map[string]uint64
	last *LastError
}

// phaseFigures are those of one phase.
type phaseFigures struct {
	took latency.Histogram
	// All dispatches are the sum of these: a difference of counts that were not read
	// at the same moment could go back, which no counter may.
	succeeded, failed, cancelled atomic.Uint64
}

// runStates are the states of a run, the most frequent ones first: they are looked
// for one by one.
//
//nolint:gochecknoglobals // an immutable table
var runStates = [...]phases.RunState{
	phases.StateSucceeded, phases.StateCached, phases.StateFiltered, phases.StateDisabled, phases.StateDenied, phases.StateQueued,
	phases.StateUnavailable, phases.StateTimedOut, phases.StateFailed, phases.StateCancelled, phases.StateBudgetExhausted, phases.StateShadowed,
}

func newTally(table *phases.Table) *tally {
	t := &tally{phases: map[phases.Phase]*phaseFigures{}, causes: map[phases.Cause]bool{}}
	for _, row := range table.Rows() {
		t.phases[row.Phase] = &phaseFigures{}
	}
	for _, c := range phases.FailureCauses() {
		t.causes[c] = true
	}
	t.known.Store(&counted{})
	return t
}

// know begins to count what a plan of the generation expects. What is counted already
// goes on.
func (t *tally) know(g *generation, p *planned) {
	t.changing.Lock()
	defer t.changing.Unlock()
	was := t.known.Load()
	next := &counted{hooks: maps.Clone(was.hooks), plugins: maps.Clone(was.plugins)}
	if next.hooks == nil {
		next.hooks, next.plugins = map[string]*figures{}, map[string]*pluginFigures{}
	}
	for _, in := range g.instances {
		if name := in.declared.Name; next.plugins[name] == nil {
			next.plugins[name] = newPluginFigures(name)
		}
	}
	for _, phase := range p.phases {
		for _, sub := range phase.Expected {
			of := next.plugins[sub.Plugin]
			if f := next.hooks[sub.ID]; f == nil || f.phase != sub.Phase || f.of != of {
				next.hooks[sub.ID] = &figures{of: of, phase: sub.Phase}
			}
		}
	}
	t.known.Store(next)
}

func newPluginFigures(name string) *pluginFigures {
	p := &pluginFigures{name: name}
	p.tools.of, p.tools.phase = p, phases.PhaseToolCall
	p.model.of, p.model.phase = p, phases.PhaseHostCall
	return p
}

// forget drops what no generation has any more. The hooks of a plugin that is declared
// and has not described itself yet may still come back: it is just being started anew.
func (e *Engine) forgetFigures() {
	t := e.tally
	t.changing.Lock()
	defer t.changing.Unlock()
	e.mu.Lock()
	generations := slices.Clone(e.generations)
	e.mu.Unlock()
	was := t.known.Load()
	next := &counted{hooks: maps.Clone(was.hooks), plugins: maps.Clone(was.plugins)}
	maps.DeleteFunc(next.plugins, func(name string, _ *pluginFigures) bool {
		return !slices.ContainsFunc(generations, func(g *generation) bool { return g.byName[name] != nil })
	})
	maps.DeleteFunc(next.hooks, func(id string, f *figures) bool {
		return next.plugins[f.of.name] != f.of || !slices.ContainsFunc(generations, func(g *generation) bool {
			in := g.byName[f.of.name]
			return in != nil && (in.description() == nil || g.planned.Load().hooks[id] != nil)
		})
	})
	t.known.Store(next)
}

// take counts one event. Its time is that of now, which is asked for what is rare only.
func (t *tally) take(ev *Event, now func() time.Time) {
	switch ev.Kind {
	case EventRun:
		t.run(ev, now)
	case EventDispatch:
		if f := t.phases[ev.Phase]; f != nil {
			f.took.Record(ev.Took)
			switch phases.RunState(ev.State) {
			case phases.StateFailed:
				f.failed.Add(1)
			case phases.StateCancelled:
				f.cancelled.Add(1)
			default:
				f.succeeded.Add(1)
			}
		}
	case EventReload:
		if ev.State == reloadInForce {
			t.reloads.Add(1)
		} else {
			t.refusedLoads.Add(1)
		}
	case EventFailOpen:
		if f := t.known.Load().hooks[ev.Subscription]; f != nil {
			f.failOpen.Add(1)
		}
	case EventAbandoned:
		if f := t.callers(ev.Plugin, ev.Subscription); f != nil {
			f.abandoned.Add(1)
			f.of.abandoned.Add(1)
		}
	default:
		if p := t.known.Load().plugins[ev.Plugin]; p != nil {
			p.take(ev, now)
		}
	}
}

// callers are the figures of a subscription, and of a plugin's tools where that is
// empty; nil where there are none any more.
func (t *tally) callers(plugin, subscription string) *figures {
	known := t.known.Load()
	if subscription != "" {
		return known.hooks[subscription]
	}
	if p := known.plugins[plugin]; p != nil {
		return &p.tools
	}
	return nil
}

// run counts a settled row of the ledger.
func (t *tally) run(ev *Event, now func() time.Time) {
	run := ev.Run
	known := t.known.Load()
	var f *figures
	switch run.Phase {
	case phases.PhaseToolCall, phases.PhaseHostCall:
		p := known.plugins[run.Plugin]
		switch {
		case p == nil || run.Attempts == 0: // nobody was asked; who asks may repeat it at will
			return
		case run.Phase == phases.PhaseToolCall:
			f = &p.tools
		default:
			f = &p.model
		}
	default:
		if f = known.hooks[run.Subscription]; f == nil {
			return
		}
	}
	if i := slices.Index(runStates[:], run.State); i >= 0 {
		f.states[i].Add(1)
	}
	f.measure(run)
	switch run.State {
	case phases.StateSucceeded, phases.StateDenied, phases.StateShadowed:
		if f.inARow.Load() != 0 {
			f.inARow.Store(0)
		}
	case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable, phases.StateBudgetExhausted:
		t.fail(f, ev, now)
	}
}

// measure notes times and sizes of a row whose plugin was asked.
func (f *figures) measure(run *phases.Run) {
	if run.Attempts > 0 && (run.Incarnation > 0 || run.Phase == phases.PhaseHostCall) {
		f.took.Record(fromMillis(run.DurationMS))
	}
	if run.Phase == phases.PhaseHostCall {
		return
	}
	if run.QueueMS > 0 {
		f.of.queued.Record(fromMillis(run.QueueMS))
	}
	if run.BytesOut > 0 {
		f.of.replies.record(run.BytesOut)
	}
	if len(run.Cut) > 0 {
		f.of.cut(run.Cut)
	}
}

// fail counts a failure by its cause, which is one of a closed list.
func (t *tally) fail(f *figures, ev *Event, now func() time.Time) {
	cause := phases.Cause(ev.Run.Code)
	if !t.causes[cause] {
		cause = phases.CauseInternal
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inARow.Add(1)
	if f.failures == nil {
		f.failures = map[phases.Cause]uint64{}
	}
	f.failures[cause]++
	f.last = &LastError{
		Code: ev.Run.Code, PluginCode: text.Sanitize(ev.Run.PluginCode, maxWordChars), Message: text.Sanitize(ev.Message, maxNoteChars), At: now(),
	}
}

// take counts what happens to a plugin seldom.
func (p *pluginFigures) take(ev *Event, now func() time.Time) {
	switch ev.Kind {
	case EventLog:
		p.logLines.Add(uint64(max(0, ev.Count)))
	case EventDropped:
		p.answers.Add(1)
	case EventJob:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.jobs == nil {
			p.jobs = map[string]uint64{}
		}
		p.jobs[ev.State]++ // the engine's own words
	case EventPlugin:
		if s := phases.PluginState(ev.State); s != phases.PluginDegraded && s != phases.PluginBackoff && s != phases.PluginQuarantined {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = &LastError{Code: ev.Code, Message: text.Sanitize(ev.Message, maxNoteChars), At: now()}
	default: // there is nothing to count of the others
	}
}

// cut counts texts that were cut.
func (p *pluginFigures) cut(list []phases.Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts == nil {
		p.cuts = map[phases.Limit]uint64{}
	}
	for i := range list {
		p.cuts[list[i].Limit]++ // a closed list: merging sets it
	}
}

// unanswered counts a call that was left, or with -1 one that the plugin has let go
// of after all: both of one call in the same figures. They are nil where nobody
// counts.
func (f *figures) unanswered(n int64) {
	if f != nil {
		f.left.Add(n)
	}
}

// fromMillis is the duration of a number of milliseconds.
func fromMillis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// reloadInForce is the state of an EventReload that came into force.
const reloadInForce = "in_force"
