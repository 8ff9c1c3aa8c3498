package runtime

import (
	"maps"

	"github.com/grapnelhq/grapnel/internal/latency"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// Overview returns how the engine is, as a snapshot. It may be called at any time,
// also after Close, but not by Options.OnEvent. It costs some microseconds a
// subscription, and nothing to those that run meanwhile.
func (e *Engine) Overview() Overview {
	g := e.current.Load()
	v := &viewer{engine: e, gen: g, planned: g.planned.Load(), known: e.tally.known.Load(), took: map[string]*latency.Snapshot{}}
	o := Overview{
		Plugins: make([]PluginHealth, 0, len(g.instances)), Hooks: v.hooks(), Phases: v.phases(),
		Reloads: e.tally.reloads.Load(), ReloadsRefused: e.tally.refusedLoads.Load(),
	}
	if o.Reloads > 0 {
		o.Reloads-- // the first one is no reload
	}
	memory := e.Memory()
	for _, in := range g.instances {
		h := v.health(in)
		h.MemoryBytes = memory[in.declared.Name]
		o.Plugins = append(o.Plugins, h)
	}
	return o
}

// viewer writes one overview.
type viewer struct {
	engine  *Engine
	gen     *generation
	planned *planned
	known   *counted
	// took is how long the hooks and tools of each plugin took.
	took map[string]*latency.Snapshot
}

// hooks are the rows of all subscriptions, then those of tools and model calls.
func (v *viewer) hooks() []HookRow {
	rows := []HookRow{}
	for _, phase := range v.planned.plan.Phases() {
		p := v.planned.phases[phase.Row.Phase]
		for i, sub := range p.Expected {
			rows = append(rows, v.hook(sub, p.hooks[i], p.runs[i].Code))
		}
	}
	for _, in := range v.gen.instances {
		p := v.known.plugins[in.declared.Name]
		if p == nil {
			continue
		}
		for _, f := range []*figures{&p.tools, &p.model} {
			row := HookRow{Plugin: p.name, Phase: f.phase, Role: phases.StageTool, Figures: f.snapshot()}
			if f == &p.model {
				row.Role = phases.StageHost
			} else {
				v.merge(p.name, row.Took.counted)
			}
			if row.Runs > 0 {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// hook is the row of one subscription.
func (v *viewer) hook(sub *plan.Subscription, h *hook, off string) HookRow {
	row := HookRow{
		Subscription: sub.ID, Hook: sub.Name, Plugin: sub.Plugin, Phase: sub.Phase, Role: sub.Stage,
		Off: off, Breaker: h.breaker.State().String(),
	}
	f := v.known.hooks[sub.ID]
	if f == nil { // it is being put in force at this very moment
		f = &figures{}
	}
	row.Figures = f.snapshot()
	v.merge(sub.Plugin, row.Took.counted)
	return row
}

// merge adds to what a plugin's calls took.
func (v *viewer) merge(plugin string, s *latency.Snapshot) {
	if v.took[plugin] == nil {
		v.took[plugin] = &latency.Snapshot{}
	}
	v.took[plugin].Merge(s)
}

// snapshot is what has been counted so far. Failures are read before what they are a
// part of: they are never more.
func (f *figures) snapshot() Figures {
	out := Figures{States: map[phases.RunState]uint64{}}
	f.mu.Lock()
	out.LastError, out.Failures, out.FailedInARow = f.last, filled(f.failures), f.inARow.Load()
	f.mu.Unlock()
	for _, n := range out.Failures {
		out.Failed += n
	}
	out.FailOpen, out.Abandoned, out.AbandonedTotal = f.failOpen.Load(), int(max(0, f.left.Load())), f.abandoned.Load()
	out.Took = latencyOf(&f.took)
	for i := range f.states {
		n := f.states[i].Load()
		if n == 0 {
			continue
		}
		out.States[runStates[i]] = n
		switch runStates[i] {
		case phases.StateCached:
			out.Cached = n
		case phases.StateFiltered, phases.StateDisabled, phases.StateQueued:
		default:
			out.Runs += n
		}
	}
	return out
}

// filled is a copy of a map that is never nil.
func filled[K comparable](m map[K]uint64) map[K]uint64 {
	if m == nil {
		return map[K]uint64{}
	}
	return maps.Clone(m)
}

// taken is how many slots are given out.
func (s *slots) taken() int { return len(s.free) - int(s.kept.Load()) }

// health is the row of one plugin.
func (v *viewer) health(in *instance) PluginHealth {
	st := in.sup.Status()
	h := PluginHealth{
		PluginRow: in.row(v.gen.number), Since: st.Since.UTC(), NextStart: st.NextAttempt.UTC(),
		Waiting: int(in.slots.waiting.Load()), Concurrency: in.slots.size(), Working: in.slots.taken(),
	}
	if st.NextAttempt.IsZero() {
		h.NextStart = st.NextAttempt
	}
	if inc := in.live.Load(); inc != nil {
		h.StartedAt = inc.since.UTC()
	}
	in.mu.Lock()
	h.Abandoned = in.abandoned
	in.mu.Unlock()
	h.Took = v.total(in.declared.Name)
	p := v.known.plugins[in.declared.Name]
	if p == nil {
		p = newPluginFigures(in.declared.Name)
	}
	p.fill(&h)
	return h
}

// total is how long all hooks and tools of a plugin took.
func (v *viewer) total(plugin string) Latency {
	s := v.took[plugin]
	if s == nil {
		s = &latency.Snapshot{}
	}
	return newLatency(s)
}

// fill writes the counters of a plugin into its row.
func (p *pluginFigures) fill(h *PluginHealth) {
	h.LogLinesDropped, h.AnswersDropped = p.logLines.Load(), p.answers.Load()
	h.Queued, h.Replies = latencyOf(&p.queued), p.replies.snapshot()
	h.AbandonedTotal = p.abandoned.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	h.LastError, h.Truncations, h.Jobs = p.last, filled(p.cuts), filled(p.jobs)
}

// phases are the rows of phases that were dispatched.
func (v *viewer) phases() []PhaseRow {
	rows := []PhaseRow{}
	for _, row := range v.engine.table.Rows() {
		f := v.engine.tally.phases[row.Phase]
		r := PhaseRow{Phase: row.Phase, Failed: f.failed.Load(), Cancelled: f.cancelled.Load()}
		if r.Dispatches = f.succeeded.Load() + r.Failed + r.Cancelled; r.Dispatches > 0 {
			r.Took = latencyOf(&f.took)
			rows = append(rows, r)
		}
	}
	return rows
}
