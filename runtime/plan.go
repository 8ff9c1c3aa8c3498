package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/answers"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/internal/pool"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

type planned struct {
	plan        *plan.Plan
	diagnostics []phases.Diagnostic
	phases      map[phases.Phase]*plannedPhase
	// hooks holds the hooks of all phases, by subscription.
	hooks map[string]*hook
	// descriptions are those that the plan was made of, by instance; nil where there was none. refused are those that
	// could not be planned.
	descriptions, refused []*phases.Description
}

// plannedPhase is the plan of one phase, with what its dispatches begin with. Its lists are in the order of Expected.
type plannedPhase struct {
	*plan.Phase
	hooks []*hook
	// runs are the rows of the ledger before anything has happened.
	runs []phases.Run
	// notes are the planner's diagnostics about the phase's subscriptions, with a fail_open mark for each guard that
	// is off for want of a grant; unguarded are the events of these marks.
	notes     []phases.Diagnostic
	unguarded []Event
	// turnNeeded is why the phase cannot be dispatched without a turn; nil if it can.
	turnNeeded *phases.Error
	// unknown are the plugins that have not described themselves and may judge in the phase.
	unknown []*pool.Instance
}

type hook struct {
	in      *pool.Instance
	breaker *supervise.Breaker
	answers *answers.Cache
	tags    []string
	merge   merge.Hook
	sight   phases.Sight
	// vary is what its answers depend on; nil if they are not cached.
	vary *answers.Vary
}

// generationsInUse returns the one in force and those that are being retired.
func (g *generations) generationsInUse() []*generation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.inUse)
}

// described plans all generations again when an instance has its first description. An error of the one in force
// refuses it; turns on older ones go on without its hooks.
func (e *Engine) described(in *pool.Instance, d *phases.Description) error {
	inForce := e.current.Load()
	var refused error
	for _, g := range e.generationsInUse() {
		err := e.include(g, in, d)
		switch {
		case err == nil:
		case g == inForce:
			refused = unplannable(err)
		default:
			e.opts.Logger.Warn("the hooks conflict with a plan that is being retired", "plugin", in.Declared.Name, "generation", g.number, "error", phases.Whole(err))
		}
	}
	return refused
}

// refresh includes the plugins that have described themselves between the plan of a new generation and its coming
// into force. A plugin that conflicts goes into quarantine.
func (e *Engine) refresh(g *generation) {
	for i, in := range g.instances {
		d := in.Description()
		if d == nil || d == g.planned.Load().descriptions[i] {
			continue
		}
		if err := e.include(g, in, d); err != nil {
			in.Reject(d, unplannable(err))
		}
	}
}

// unplannable is the failure of a plugin whose valid description conflicts with the plan.
func unplannable(err error) *phases.Error {
	return &phases.Error{Code: phases.CauseInvalidReply, Message: "its hooks conflict with the running plan", Detail: phases.Whole(err), Err: err}
}

// include plans a generation again with the description of one more of its plugins. On error the plan only gets the
// plugin's guards, which fail.
func (e *Engine) include(g *generation, in *pool.Instance, d *phases.Description) error {
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
		e.opts.Logger.Error("guards of a plugin that was refused are in no plan", "plugin", in.Declared.Name, "error", second)
	}
	return err
}

// replan builds the plan of descriptions, and of refused ones, by instance. Breakers and cached answers are kept. The
// caller holds g.planning, or g is not shared yet.
func (e *Engine) replan(g *generation, descriptions, refused []*phases.Description) error {
	next := &planned{phases: map[phases.Phase]*plannedPhase{}, hooks: map[string]*hook{}, descriptions: descriptions, refused: refused}
	plugins := make([]plan.Plugin, len(g.cfg.Plugins))
	for i, p := range g.cfg.Plugins {
		plugins[i] = plan.Plugin{Name: p.Name, Description: descriptions[i], Refused: refused[i], Grants: p.Grants, Overrides: p.Subscriptions, Command: p.Command != "", FailsOpen: p.OnFailure == config.FailOpen}
	}
	budgets := map[phases.Phase]plan.Budget{}
	for phase, b := range g.cfg.Budgets.Phases {
		budgets[phase] = plan.Budget{Time: b.Time.D(), Require: b.Require}
	}
	p, diagnostics, err := plan.Build(plugins, plan.Options{Table: e.table, Budgets: budgets, Services: e.services.Words()})
	if err != nil {
		return plan.Located(err, g.cfg.PlanError)
	}
	next.plan, next.diagnostics = p, slices.Concat(e.notEnforced(g.cfg), pool.StoreExposed(g.cfg), diagnostics)
	old := g.planned.Load()
	for _, phase := range p.Phases() {
		next.phases[phase.Row.Phase] = e.newPhase(g, next, phase, old)
	}
	g.planned.Store(next)
	e.expect(g, next)
	return nil
}

func (e *Engine) newPhase(g *generation, next *planned, phase *plan.Phase, old *planned) *plannedPhase {
	out := &plannedPhase{Phase: phase, runs: make([]phases.Run, 0, len(phase.Expected)), turnNeeded: phase.TurnNeeded()}
	for _, sub := range phase.Expected {
		h := e.newHook(g, phase.Row, sub, old)
		next.hooks[sub.ID] = h
		out.hooks = append(out.hooks, h)
		if sub.Undescribed && sub.FailClosed && (phase.Row.Decides() || phase.Row.Accepts(phases.KindRewrite)) && !slices.Contains(out.unknown, h.in) {
			out.unknown = append(out.unknown, h.in)
		}
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
			continue // the plan shows it; not each turn
		}
		out.notes = append(out.notes, note)
	}
	return out
}

// markOff marks a guard that is off for want of a grant, not by the operator's choice. A shadow hook guards nothing.
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

func (e *Engine) newHook(g *generation, row phases.Row, sub *plan.Subscription, old *planned) *hook {
	grants := sub.Grants
	h := &hook{
		in: g.byName[sub.Plugin],
		merge: merge.Hook{
			Subscription: sub.ID, Hook: sub.Name, Plugin: sub.Plugin, PluginVersion: sub.PluginVersion, Priority: sub.Priority,
			Kinds: sub.Kinds, Budget: sub.Budget, Grants: grants, Shadow: sub.Shadow, Visibility: sub.Visibility,
			Key: []byte(g.cfg.Manifest.FingerprintKey.Value), IDs: merge.DefaultIDs(sub.ID),
		},
		sight: phases.NewSight(sub.Needs, func(name string) bool { return phases.Allows(grants.See, name) }),
	}
	if sub.Cache != nil {
		h.tags = sub.Cache.Tags
		if !sub.Shadow && !sub.Undescribed {
			h.vary = answers.NewVary(row, sub.Cache.Vary)
		}
	}
	if old != nil && old.hooks[sub.ID] != nil {
		h.breaker, h.answers = old.hooks[sub.ID].breaker, old.hooks[sub.ID].answers
	} else {
		h.answers = answers.New()
		h.breaker = supervise.NewBreaker(supervise.BreakerOptions{OnChange: func(_, to supervise.BreakerState) {
			e.emit(Event{Kind: EventBreaker, Plugin: sub.Plugin, Subscription: sub.ID, Phase: sub.Phase, State: string(to)})
		}})
	}
	return h
}

// phaseOf returns the plan of a phase. It waits, until the given time, for the first start of plugins that have not described
// themselves and may judge in the phase.
func (g *generation) phaseOf(ctx context.Context, name phases.Phase, until time.Time) *plannedPhase {
	phase := g.planned.Load().phases[name]
	if len(phase.unknown) == 0 {
		return phase
	}
	for _, in := range phase.unknown {
		if in.Status().Failures > 0 {
			continue
		}
		if inc, _ := in.Await(ctx, until, false); inc != nil {
			inc.Leave()
		}
	}
	return g.planned.Load().phases[name]
}

// judgeless is why a phase that decides cannot be dispatched yet: a guard of it depends on turn.pre_policy, which has
// hooks and has not been dispatched.
func (t *Turn) judgeless(phase phases.Phase) error {
	p := t.gen.planned.Load().phases[phase]
	if p == nil || p.turnNeeded == nil || !p.Row.Decides() || t.state.Dispatched(phases.PrePolicy) || len(t.gen.planned.Load().phases[phases.PrePolicy].Running()) == 0 {
		return nil
	}
	return p.turnNeeded
}
