package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// Build makes the plan of the given plugins. It checks
//
//   - plugins: names are well formed and unique;
//   - grants: input fields are those of a phase, and sections none of the compiler's own;
//   - budgets: the phase exists, has time, and its required subscriptions exist, belong to it
//     and can complete in it;
//   - overrides: the subscription exists; a fail-closed one of a plugin that never described
//     itself states the phase;
//   - effective subscriptions: unique ids, [phases.ValidateHook], the operator's timeout is
//     within the phase's budget, the condition compiles;
//   - dependencies: hard ones exist, all are of one phase and stage, and there is no cycle.
//
// The diagnostics are sorted remarks on a valid plan. An error is a [*Problems] with all mistakes.
func Build(plugins []Plugin, o Options) (*Plan, []phases.Diagnostic, error) {
	b := newBuilder(o)
	b.declare(plugins)
	b.checkBudgets()
	seen := b.seen()
	for _, p := range b.plugins {
		b.checkWords(p, "grants.see", "input field", p.Grants.See, seen, true)
		b.checkWords(p, "grants.host", "host service", p.Grants.Host, o.Services, false)
		b.checkSections(p, "grants.sections", p.Grants.Sections)
		b.checkSections(p, "grants.stable_sections", p.Grants.StableSections)
		b.checkSections(p, "grants.join", p.Grants.Join)
		if p.Description != nil {
			b.described(p)
		} else {
			b.undescribed(p)
			b.refused(p)
		}
	}
	b.require()
	b.unknown()
	b.order()
	if problems := sorted(b.problems); problems != nil {
		return nil, nil, problems
	}
	p := b.plan()
	b.judgedEarlier(p)
	return p, b.notes(), nil
}

type builder struct {
	table    *phases.Table
	budgets  map[phases.Phase]Budget
	plugins  []*Plugin // sorted by name, without invalid names
	byName   map[string]*Plugin
	nodes    map[string]*node          // the subscriptions by id
	broken   map[string]bool           // ids that a mistake keeps out of nodes; others may name them
	required map[phases.Phase][]string // the checked Require lists

	problems    []Problem
	diagnostics []phases.Diagnostic
}

// node is a subscription while the plan is being made.
type node struct {
	*Subscription

	row phases.Row
	off string // the reason why it is off; "" when it is on
	// operatorAfter and operatorBefore say whether the dependencies are the operator's.
	operatorAfter, operatorBefore bool
	next, previous                []edge // resolved dependencies
}

func newBuilder(o Options) *builder {
	return &builder{
		table: cmp.Or(o.Table, phases.Standard()), budgets: o.Budgets, byName: map[string]*Plugin{}, nodes: map[string]*node{},
		broken: map[string]bool{}, required: map[phases.Phase][]string{},
	}
}

func (b *builder) declare(plugins []Plugin) {
	first := map[string]int{}
	for i := range plugins {
		p := plugins[i]
		if !phases.ValidPluginName(p.Name) {
			b.problemf(&p, "", "name", "plugin name %q: use letters, digits, _ and -, beginning with a letter or digit", p.Name)
			continue
		}
		if j, dup := first[p.Name]; dup {
			b.problemf(&p, "", "name", "plugin %q is configured twice, as plugins[%d] and plugins[%d]", p.Name, j, i)
			continue
		}
		first[p.Name] = i
		b.byName[p.Name] = &p
		b.plugins = append(b.plugins, &p)
	}
	slices.SortFunc(b.plugins, func(x, y *Plugin) int { return cmp.Compare(x.Name, y.Name) })
}

// seen returns what grants of fields may name: what is visible in some phase, or nil with a phase of the host's own,
// which has any fields.
func (b *builder) seen() (all []string) {
	for _, row := range b.table.Rows() {
		fields := phases.Visible(row)
		if fields == nil {
			return nil
		}
		all = append(all, fields...)
	}
	return append(all, "tool")
}

// checkWords finds words of a grant that nothing has; of a list that is not closed only those that resemble a known one. Without
// known words, all are fine.
func (b *builder) checkWords(p *Plugin, field, what string, words, known []string, closed bool) {
	for _, word := range words {
		if known == nil || slices.ContainsFunc(known, func(name string) bool { return phases.Allows([]string{word}, name) }) {
			continue
		}
		if near := suggest.DidYouMean(strings.TrimSuffix(word, "*"), known); closed || near != "" { // another host may have it
			b.problemf(p, "", field, "unknown %s %q%s", what, word, near)
		}
	}
}

// checkSections finds grants of sections that no plugin may write.
func (b *builder) checkSections(p *Plugin, field string, granted []string) {
	for _, id := range granted {
		if sections.Reserved(id) {
			b.problemf(p, "", field, "the section %q is, or reads like, one of the compiler's own, which cannot be granted", id)
		}
	}
}

func (b *builder) checkBudgets() {
	for phase, budget := range b.budgets {
		field := "budgets.phases." + string(phase)
		row, ok := b.table.Lookup(phase)
		switch {
		case !ok:
			b.problemf(nil, "", field, "unknown phase %q%s", phase, suggest.DidYouMean(string(phase), b.table.Names()))
		case row.Queue && budget.Time != 0:
			b.problemf(nil, "", field+".time", "%s runs in the background and has no time budget", phase)
		case budget.Time < 0:
			b.problemf(nil, "", field+".time", "%s: time %v must not be negative", phase, budget.Time)
		}
	}
}

func (b *builder) limit(row phases.Row) time.Duration {
	if t := b.budgets[row.Phase].Time; t > 0 && !row.Queue {
		return t
	}
	return row.Budget
}

func (b *builder) described(p *Plugin) {
	first := map[string]int{}
	for i, hook := range p.Description.Hooks {
		id := p.Name + "." + hook.Name
		if j, dup := first[id]; dup {
			b.problemf(p, id, "", "%s: the plugin registers this hook twice, as hooks[%d] and hooks[%d]", id, j, i)
			continue
		}
		first[id] = i
		b.add(p, id, hook, p.Overrides[id], false)
	}
	for id, o := range p.Overrides {
		if _, ok := first[id]; ok {
			if p.Command {
				b.needPhase(p, id, o, "its plugin is a program of its own, which may be down")
			}
			continue
		}
		b.problemf(p, id, "", "plugin %q has no hook for the subscription %q%s", p.Name, id, suggest.DidYouMean(id, slices.Sorted(maps.Keys(first))))
	}
}

func (b *builder) undescribed(p *Plugin) {
	for id, o := range p.Overrides {
		name, ok := strings.CutPrefix(id, p.Name+".")
		switch {
		case !ok:
			b.problemf(p, id, "", "the subscription %q is not of plugin %q; write %s.HOOK", id, p.Name, p.Name)
		case o.Phase != nil:
			b.add(p, id, phases.Hook{Name: name}, o, true)
		default:
			b.needPhase(p, id, o, "its plugin has never described itself")
		}
	}
}

// refused adds the guards of a refused description: a guard that cannot be called must not count as an allow.
func (b *builder) refused(p *Plugin) {
	if p.Refused == nil {
		return
	}
	for i := range p.Refused.Hooks {
		h := &p.Refused.Hooks[i]
		id := p.Name + "." + h.Name
		row, known := b.table.Lookup(h.Phase)
		if !known || !row.Decides() || !h.Decides() || !phases.ValidName(h.Name) || b.nodes[id] != nil {
			continue
		}
		o := p.Overrides[id]
		guard := phases.Hook{Name: h.Name, Phase: h.Phase, Kinds: []phases.Kind{phases.KindDecision}}
		b.add(p, id, guard, phases.Override{Enabled: o.Enabled, Shadow: o.Shadow}, true)
	}
}

// unknown adds a hook for each plugin that has not described itself, in each phase to which it may contribute and in which
// the operator has not declared one that is on: what a plugin that is down would have done there has a row.
func (b *builder) unknown() {
	type place struct {
		plugin string
		phase  phases.Phase
	}
	declared := map[place]bool{}
	for _, n := range b.nodes {
		if n.off == "" && !n.Shadow && (n.Stage != phases.RoleObserve || n.row.Queue) {
			declared[place{n.Plugin, n.Phase}] = true
		}
	}
	for _, p := range b.plugins {
		for _, row := range b.table.Rows() {
			if kind := brings(p, row); kind != "" && p.Description == nil && p.Refused == nil && !declared[place{p.Name, row.Phase}] {
				b.add(p, p.Name+"."+anyHook+string(row.Phase), anyGuard(p, row, kind), phases.Override{}, true)
			}
		}
	}
}

// brings returns a kind that a plugin may contribute to a phase: a decision or a rewrite, if it may; empty if there is none.
func brings(p *Plugin, row phases.Row) phases.Kind {
	kinds := slices.Concat([]phases.Kind{phases.KindDecision, phases.KindRewrite}, row.Kinds)
	if row.Queue { // its hooks work in the background
		kinds = phases.AlwaysAccepted()
	}
	for _, kind := range kinds {
		if kind.NeedsGrant() && row.Accepts(kind) && phases.Allows(p.Grants.Contribute, string(kind)) {
			return kind
		}
	}
	return ""
}

func anyGuard(p *Plugin, row phases.Row, kind phases.Kind) phases.Hook {
	guard := phases.Hook{Name: anyHook + string(row.Phase), Phase: row.Phase, Kinds: []phases.Kind{kind}}
	if !row.Queue {
		guard.Role = phases.RoleContribute
	}
	if guard.OnFailure.Default = phases.FailClosed; p.FailsOpen || row.FailsOpen || !judges(kind) {
		guard.OnFailure.Default = phases.BestEffort
	}
	return guard
}

// needPhase refuses a guard that would silently be absent while its plugin is down, because its phase is unknown.
func (b *builder) needPhase(p *Plugin, id string, o phases.Override, because string) {
	off := o.Enabled != nil && !*o.Enabled
	if o.Phase == nil && o.OnFailure != nil && o.OnFailure.Uses(phases.FailClosed) && !off {
		b.problemf(p, id, "on_failure", "%s: fail_closed needs a phase beside it, because %s", id, because)
	}
}

// require checks what phases require, and expects it also of plugins that never described themselves.
func (b *builder) require() {
	for _, row := range b.table.Rows() {
		for _, id := range b.budgets[row.Phase].Require {
			if b.requireOne(row, id) && !slices.Contains(b.required[row.Phase], id) {
				b.required[row.Phase] = append(b.required[row.Phase], id)
			}
		}
		slices.Sort(b.required[row.Phase])
	}
}

func (b *builder) requireOne(row phases.Row, id string) bool {
	field := "budgets.phases." + string(row.Phase) + ".require"
	name, hook, _ := strings.Cut(id, ".")
	if p := b.byName[name]; p != nil && p.Description == nil && b.nodes[id] == nil && !b.broken[id] && phases.ValidName(hook) {
		b.add(p, id, phases.Hook{Name: hook, Phase: row.Phase}, p.Overrides[id], true)
	}
	n := b.nodes[id]
	switch {
	case b.broken[id]:
		return false
	case n == nil:
		b.problemf(nil, id, field, "%s requires %q, which does not exist%s", row.Phase, id, b.nearest(id, row.Phase))
		return false
	case n.Phase != row.Phase:
		b.problemf(nil, id, field, "%s requires %q, which belongs to the phase %s", row.Phase, id, n.Phase)
		return false
	}
	if why := neverCompletes(n, row); why != "" {
		b.problemf(nil, id, field, "%s requires %q, which can never be met: %s", row.Phase, id, why)
		return false
	}
	return true
}

// neverCompletes says why a hook cannot complete in its phase; "" if it can.
func neverCompletes(n *node, row phases.Row) string {
	switch {
	case row.Queue:
		return "hooks of this phase run in the background, when the phase is over; remove it from require"
	case n.Role == phases.RoleObserve:
		return "it observes, in the background, when the phase is over; remove it from require, or give it another role"
	}
	return ""
}

func (b *builder) nearest(id string, phase phases.Phase) string {
	var here, all []string
	for known, n := range b.nodes {
		all = append(all, known)
		if n.Phase == phase {
			here = append(here, known)
		}
	}
	slices.Sort(here)
	slices.Sort(all)
	return cmp.Or(suggest.DidYouMean(id, here), suggest.DidYouMean(id, all))
}

func (b *builder) problemf(p *Plugin, id, field, format string, args ...any) {
	b.problem(p, id, field, fmt.Sprintf(format, args...), nil)
}

func (b *builder) problem(p *Plugin, id, field, message string, cause error) {
	one := Problem{Subscription: id, Field: field, Message: message, Err: cause}
	if p != nil {
		one.Plugin = p.Name
		if id != "" {
			one.Field = strings.TrimSuffix("subscriptions."+id+"."+field, ".")
		}
	}
	b.problems = append(b.problems, one)
}

func (b *builder) notef(code string, severity phases.Severity, n *node, format string, args ...any) {
	b.diagnostics = append(b.diagnostics, phases.Diagnostic{
		Code: code, Severity: severity, Message: fmt.Sprintf(format, args...), Plugin: n.Plugin, Subscription: n.ID, Visibility: n.Visibility,
	})
}

func (b *builder) notes() []phases.Diagnostic {
	slices.SortStableFunc(b.diagnostics, func(x, y phases.Diagnostic) int {
		return cmp.Or(cmp.Compare(x.Plugin, y.Plugin), cmp.Compare(x.Subscription, y.Subscription), cmp.Compare(x.Code, y.Code), cmp.Compare(x.Message, y.Message))
	})
	return b.diagnostics
}
