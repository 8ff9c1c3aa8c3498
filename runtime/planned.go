package runtime

import (
	"errors"
	"slices"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// planned is a plan with what dispatch needs beside it. It does not change.
type planned struct {
	plan        *plan.Plan
	diagnostics []phases.Diagnostic
	phases      map[phases.Phase]*plannedPhase
	// hooks are those of all phases, by subscription.
	hooks map[string]*hook
	// descriptions are those that the plan was made of, one an instance; nil where
	// there was none. Refused are those that did not fit.
	descriptions, refused []*phases.Description
}

// plannedPhase is the plan of one phase, with what each dispatch of it begins
// with. Its lists are in the order of Expected.
type plannedPhase struct {
	*plan.Phase
	hooks []*hook
	// runs are the rows of the ledger before anything has happened.
	runs []phases.Run
	// notes is what the planner has to say about the phase's subscriptions, with a
	// fail_open mark for each guard that is off for want of a grant; unguarded are
	// the events of these marks.
	notes     []phases.Diagnostic
	unguarded []Event
	// turnNeeded is why the phase is not dispatched without a turn; nil if it is.
	turnNeeded *phases.Error
}

// hook is the runtime's side of one subscription.
type hook struct {
	in      *instance
	breaker *supervise.Breaker
	answers *answers
	tags    []string
	merge   merge.Hook
	sight   phases.Sight
	// varying is what its answers depend on; nil if none is kept.
	varying *varying
}

// described is called when an instance has its first description: generations
// that are there already are planned anew. Whether its hooks fit is up to the
// one in force; turns that still end on an older one go on without them.
func (e *Engine) described(in *instance, d *phases.Description) error {
	e.mu.Lock()
	inForce, generations := e.current.Load(), slices.Clone(e.generations)
	e.mu.Unlock()
	var refused error
	for _, g := range generations {
		err := e.include(g, in, d)
		switch {
		case err == nil:
		case g == inForce:
			refused = unfit(err)
		default:
			e.opts.Logger.Warn("the hooks do not fit a plan that is being retired", "plugin", in.declared.Name, "generation", g.number, "error", phases.Whole(err))
		}
	}
	return refused
}

// refresh includes the plugins that have described themselves between the plan
// of a new generation and the moment that it was in force. One that does not fit
// goes into quarantine; the others are not held up by it.
func (e *Engine) refresh(g *generation) {
	for i, in := range g.instances {
		d := in.description()
		if d == nil || d == g.planned.Load().descriptions[i] {
			continue
		}
		if err := e.include(g, in, d); err != nil {
			in.reject(d, unfit(err))
		}
	}
}

// unfit is the failure of a plugin whose description is valid in itself.
func unfit(err error) *phases.Error {
	return &phases.Error{Code: phases.CauseInvalidReply, Message: "its hooks do not fit the running plan", Detail: phases.Whole(err), Err: err}
}

// include plans a generation anew with the description of one more plugin, if
// it has the plugin. On error the plan stays as it was, but that the plugin's guards
// are expected and fail.
func (e *Engine) include(g *generation, in *instance, d *phases.Description) error {
	i := slices.Index(g.instances, in)
	if i < 0 {
		return nil
	}
	g.planning.Lock()
	defer g.planning.Unlock()
	known := g.planned.Load()
	descriptions, refused := slices.Clone(known.descriptions), slices.Clone(known.refused)
	descriptions[i], refused[i] = d, nil
	err := e.replan(g, descriptions, refused)
	if err == nil {
		return nil
	}
	descriptions[i], refused[i] = known.descriptions[i], d
	if second := e.replan(g, descriptions, refused); second != nil {
		e.opts.Logger.Error("guards of a plugin that was refused are in no plan", "plugin", in.declared.Name, "error", second)
	}
	return err
}

// replan builds the plan of the given descriptions, one an instance, and of those
// that were refused. Breakers and cached answers are kept. The caller holds
// g.planning, or nobody else knows g yet.
func (e *Engine) replan(g *generation, descriptions, refused []*phases.Description) error {
	next := &planned{phases: map[phases.Phase]*plannedPhase{}, hooks: map[string]*hook{}, descriptions: descriptions, refused: refused}
	plugins := make([]plan.Plugin, len(g.cfg.Plugins))
	for i, p := range g.cfg.Plugins {
		plugins[i] = plan.Plugin{Name: p.Name, Description: descriptions[i], Refused: refused[i], Grants: p.Grants, Overrides: p.Subscriptions, Command: p.Command != ""}
	}
	budgets := map[phases.Phase]plan.Budget{}
	for phase, b := range g.cfg.Budgets.Phases {
		budgets[phase] = plan.Budget{Time: b.Time.D(), Require: b.Require}
	}
	p, diagnostics, err := plan.Build(plugins, plan.Options{Table: e.table, Budgets: budgets})
	if err != nil {
		return locate(g.cfg, err)
	}
	next.plan, next.diagnostics = p, slices.Concat(e.notEnforced(g.cfg), StoreExposed(g.cfg), e.recycleNotes(g.cfg), diagnostics)
	old := g.planned.Load()
	for _, phase := range p.Phases() {
		next.phases[phase.Row.Phase] = g.newPhase(next, phase, old)
	}
	g.planned.Store(next)
	e.tally.know(g, next)
	return nil
}

// newPhase prepares what the dispatches of a phase begin with.
func (g *generation) newPhase(next *planned, phase *plan.Phase, old *planned) *plannedPhase {
	out := &plannedPhase{Phase: phase, runs: make([]phases.Run, 0, len(phase.Expected)), turnNeeded: turnNeeded(phase)}
	for _, sub := range phase.Expected {
		h := g.newHook(phase.Row, sub, old)
		next.hooks[sub.ID] = h
		out.hooks = append(out.hooks, h)
		out.runs = append(out.runs, phases.Run{
			Subscription: sub.ID, Hook: sub.Name, Plugin: sub.Plugin, PluginVersion: sub.PluginVersion, Generation: g.number,
			Phase: phase.Row.Phase, Stage: sub.Stage, Layer: sub.Layer, Contributions: []string{}, Cut: []phases.Cut{},
		})
	}
	for _, off := range phase.Off {
		run := &out.runs[off.Subscription.Index]
		run.State, run.Code = phases.StateDisabled, off.Reason
		out.markOff(off)
	}
	for _, note := range next.diagnostics {
		sub := next.plan.Subscription(note.Subscription)
		if sub == nil || sub.Phase != phase.Row.Phase || note.Code == phases.CodeNeedsNotGranted && !sub.Decides() {
			continue // what any other hook lacks, the plan shows, and not each turn
		}
		out.notes = append(out.notes, note)
	}
	return out
}

// markOff marks a guard that is off for want of a grant. What the operator has
// switched off is nobody's failure, and a shadow hook guards nothing.
func (p *plannedPhase) markOff(off plan.Off) {
	sub := off.Subscription
	if off.Reason == plan.ReasonOperator || !sub.Decides() || sub.Shadow {
		return
	}
	p.notes = append(p.notes, phases.Diagnostic{
		Code: phases.CodeFailOpen, Severity: phases.SeverityWarning, Plugin: sub.Plugin, Subscription: sub.ID, Cause: phases.Cause(off.Reason), Visibility: sub.Visibility,
		Message: sub.ID + " decides, and is off (" + off.Reason + "): it allows everything",
	})
	p.unguarded = append(p.unguarded, Event{Kind: EventFailOpen, Plugin: sub.Plugin, Subscription: sub.ID, Phase: sub.Phase, Code: off.Reason})
}

// newHook prepares the runtime's side of a subscription.
func (g *generation) newHook(row phases.Row, sub *plan.Subscription, old *planned) *hook {
	grants := sub.Grants
	h := &hook{
		in: g.byName[sub.Plugin],
		merge: merge.Hook{
			Subscription: sub.ID, Hook: sub.Name, Plugin: sub.Plugin, PluginVersion: sub.PluginVersion, Priority: sub.Priority,
			Kinds: sub.Kinds, Budget: sub.Budget, Grants: grants, Shadow: sub.Shadow, Visibility: sub.Visibility,
			Key: []byte(g.cfg.Manifest.FingerprintKey.Value),
		},
		sight:   phases.NewSight(sub.Needs, func(name string) bool { return phases.Allows(grants.See, name) }),
		varying: newVarying(row, sub),
	}
	if sub.Cache != nil {
		h.tags = sub.Cache.Tags
	}
	if old != nil && old.hooks[sub.ID] != nil {
		h.breaker, h.answers = old.hooks[sub.ID].breaker, old.hooks[sub.ID].answers
	} else {
		h.breaker, h.answers = supervise.NewBreaker(supervise.BreakerOptions{OnChange: h.in.tellBreaker(sub)}), newAnswers()
	}
	return h
}

// tellBreaker tells of the changes of a subscription's breaker.
func (in *instance) tellBreaker(sub *plan.Subscription) func(from, to supervise.BreakerState) {
	ev := Event{Kind: EventBreaker, Plugin: sub.Plugin, Subscription: sub.ID, Phase: sub.Phase}
	return func(_, to supervise.BreakerState) {
		told := ev
		told.State = to.String()
		in.engine.emit(told)
	}
}

// locate gives planner problems the places of the operator's file.
func locate(cfg *config.Config, err error) error {
	problems, ok := errors.AsType[*plan.Problems](err)
	if !ok {
		return err
	}
	var all []error
	for _, p := range problems.List {
		all = append(all, cfg.PlanError(p.Plugin, p.Field, p.Message))
	}
	return errors.Join(all...)
}
