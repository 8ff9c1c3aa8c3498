package runtime

import (
	"slices"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/answers"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/stats"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// codeStateInMemory: a plugin may keep state, and a restart loses it.
const codeStateInMemory = "state_in_memory"

// notEnforced warns of settings that are accepted here and have no effect.
func (e *Engine) notEnforced(cfg *config.Config) []phases.Diagnostic {
	notes := e.pool.NotEnforced(cfg)
	warn := func(code, plugin, slot, message string) {
		notes = append(notes, phases.Diagnostic{Code: code, Severity: phases.SeverityWarning, Plugin: plugin, Slot: slot, Message: message})
	}
	_, forgetful := e.opts.State.(*hostservice.MemoryState)
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; forgetful && phases.Allows(p.Grants.Host, hostservice.ServiceState) {
			warn(codeStateInMemory, p.Name, "grants.host",
				"what the plugin "+p.Name+" keeps by the service \"state\" is gone when this process ends: this host has no store for it")
		}
	}
	switch {
	case cfg.Store.Value == "" || e.opts.Sink != nil:
	case e.opts.Queue == nil:
		warn(pool.CodeNotEnforced, "", "store", "this host has no store: manifests are not kept, and background work is lost when this process ends")
	default:
		warn(pool.CodeNotEnforced, "", "store", "manifests are not kept: this host has no store for them")
	}
	return notes
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
			h.vary = answers.NewVary(row, varied(sub))
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

// varied are the fields that a hook's answers depend on: the facts of a call change with the files.
func varied(sub *plan.Subscription) []string {
	if sub.Facts {
		return append(slices.Clip(sub.Cache.Vary), "input."+phases.SeeFacts)
	}
	return sub.Cache.Vary
}

func (e *Engine) expect(g *generation, p *planned) {
	var hooks []stats.Hook
	for _, phase := range p.phases {
		for _, sub := range phase.Expected {
			hooks = append(hooks, stats.Hook{ID: sub.ID, Plugin: sub.Plugin, Phase: sub.Phase})
		}
	}
	plugins := make([]string, len(g.instances))
	for i, in := range g.instances {
		plugins[i] = in.Declared.Name
	}
	e.stats.Expect(plugins, hooks)
}

// forgetStats drops the stats of what no generation has any more. The hooks of a plugin that is starting again, and
// has not described itself yet, are kept.
func (e *Engine) forgetStats(generations []*generation) {
	e.stats.Forget(func(plugin string) bool {
		return slices.ContainsFunc(generations, func(g *generation) bool { return g.byName[plugin] != nil })
	}, func(plugin, id string) bool {
		return slices.ContainsFunc(generations, func(g *generation) bool {
			in := g.byName[plugin]
			return in != nil && (in.Description() == nil || g.planned.Load().hooks[id] != nil)
		})
	})
}
