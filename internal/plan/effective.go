package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/internal/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	defaultTimeout      = time.Second
	defaultQueueTimeout = 30 * time.Second
)

func (b *builder) add(p *Plugin, id string, proposed phases.Hook, o phases.Override, undescribed bool) {
	hook := applied(proposed, o)
	row, ok := b.table.Lookup(hook.Phase)
	if !ok {
		b.broken[id] = true
		b.problem(p, id, "phase", o.Phase != nil, id+": unknown phase \""+string(hook.Phase)+"\""+suggest.DidYouMean(string(hook.Phase), b.table.Names()), nil)
		return
	}
	n := &node{
		Subscription: &Subscription{ID: id, Plugin: p.Name, Grants: &p.Grants, Undescribed: undescribed},
		row:          row, operatorAfter: o.After != nil, operatorBefore: o.Before != nil,
	}
	if p.Description != nil {
		n.PluginVersion = p.Description.Version
	}
	if undescribed && len(hook.Kinds) == 0 {
		if hook.Kinds = kindsOf(hook.Fallback); hook.Kinds == nil && brings(p, row) == phases.KindDecision && hook.Role != phases.RoleTransform {
			hook.Kinds = []phases.Kind{phases.KindDecision} // it may, and fails closed unless the operator says otherwise
		}
	}
	hook.Role = defaultRole(&hook, row)
	if hook.OnFailure.Default == "" {
		hook.OnFailure.Default = phases.BestEffort
		if hook.Decides() && !row.FailsOpen {
			hook.OnFailure.Default = phases.FailClosed
		}
	}
	hook.Visibility = cmp.Or(hook.Visibility, phases.VisibilityInternal)
	n.Hook, n.Stage, n.FailClosed = hook, hook.Role, hook.OnFailure.Uses(phases.FailClosed)
	b.nodes[id] = n
	b.setTimeout(p, n, proposed.Timeout.D(), o.Timeout)
	if o.Enabled != nil && !*o.Enabled {
		n.off = ReasonOperator
		return // what is switched off may be wrong: that may be why
	}
	b.checkGrants(p, n)
	b.checkNeeds(p, n, o)
	b.checkHook(p, n, proposed, o)
	b.compile(p, n, o)
	b.checkVary(p, n, o)
}

func applied(h phases.Hook, o phases.Override) phases.Hook {
	set(&h.Phase, o.Phase)
	set(&h.Role, o.Role)
	set(&h.Priority, o.Priority)
	set(&h.After, o.After)
	set(&h.Before, o.Before)
	set(&h.When, o.When)
	set(&h.Timeout, o.Timeout)
	set(&h.OnFailure, o.OnFailure)
	set(&h.Budget, o.Budget)
	set(&h.Shadow, o.Shadow)
	set(&h.Visibility, o.Visibility)
	if o.Kinds != nil {
		h.Kinds = o.Kinds
	}
	if o.Fallback != nil {
		h.Fallback = o.Fallback
	}
	if o.Retry != nil {
		h.Retry = o.Retry
	}
	if o.Cache != nil {
		h.Cache = o.Cache
	}
	return h
}

func set[T any](field, override *T) {
	if override != nil {
		*field = *override
	}
}

// defaultRole is the role of a hook that names none. A hook that rewrites does so before others judge.
func defaultRole(h *phases.Hook, row phases.Row) phases.Role {
	switch {
	case h.Role != "":
		return h.Role
	case row.Queue:
		return phases.RoleObserve
	case slices.Contains(h.Kinds, phases.KindRewrite) && row.Takes(phases.RoleTransform):
		return phases.RoleTransform
	default:
		return phases.RoleContribute
	}
}

func (b *builder) setTimeout(p *Plugin, n *node, proposed time.Duration, override *phases.Duration) {
	limit, standard := b.limit(n.row), defaultTimeout
	if n.row.Queue {
		standard = defaultQueueTimeout
	}
	if limit > 0 {
		standard = min(standard, limit)
	}
	if n.ProposedTimeout = proposed; proposed <= 0 {
		n.ProposedTimeout = standard
	}
	switch wanted := n.Timeout.D(); {
	case wanted == 0:
		n.Timeout = phases.Duration(standard)
	case wanted < 0, limit == 0, wanted <= limit:
		// As it stands; a negative one is found with the other mistakes.
	case override != nil:
		b.operatorf(p, n.ID, "timeout", "%s: timeout %v is more than the budget of %s, %v", n.ID, wanted, n.Phase, limit)
	default:
		n.Timeout = phases.Duration(limit)
		b.notef(codeTimeoutLowered, phases.SeverityInfo, n, "%s wants %v and gets %v, the budget of %s", n.ID, wanted, limit, n.Phase)
	}
}

// checkGrants turns a subscription off whose kinds are not all granted.
func (b *builder) checkGrants(p *Plugin, n *node) {
	var missing []string
	for _, k := range n.Kinds {
		if k.NeedsGrant() && !phases.Allows(p.Grants.Contribute, string(k)) && !slices.Contains(missing, string(k)) {
			missing = append(missing, string(k))
		}
	}
	if len(missing) == 0 {
		return
	}
	n.off = ReasonNotGranted
	b.notef(phases.CodeNotGranted, phases.SeverityWarning, n, "%s is off: it declares %s, and plugin %q is not granted that (grants.contribute)",
		n.ID, strings.Join(missing, ", "), n.Plugin)
}

// checkNeeds compares what a hook needs to see with its plugin's grants. A hook that decides without seeing what it
// judges would allow everything: that is a mistake unless the operator turns it off. Shadow hooks and all others run
// without.
func (b *builder) checkNeeds(p *Plugin, n *node, o phases.Override) {
	if known := phases.Visible(n.row); known != nil {
		n.Withheld = ungranted(p, known)
	}
	if n.Decides() && n.Stage == phases.RoleObserve && n.off == "" {
		b.notef(phases.CodeNotAllowed, phases.SeverityWarning, n, "%s decides and observes: its decision comes to nothing", n.ID)
	}
	missing, fields := ungranted(p, n.Needs), slices.DeleteFunc(slices.Clone(n.Withheld), func(name string) bool { return slices.Contains(phases.SeenSets(), name) })
	if phases.Visible(n.row) == nil && !phases.Allows(p.Grants.See, "*") {
		fields = []string{"what is not named there"}
	}
	guard := n.Decides() && !n.Shadow && n.Stage != phases.RoleObserve
	turnOff := o.WithoutNeeds != nil && *o.WithoutNeeds == phases.TurnOff
	if o.WithoutNeeds != nil && !turnOff {
		b.operatorf(p, n.ID, "without_needs", "%s: without_needs %q: it takes the word %s", n.ID, *o.WithoutNeeds, phases.TurnOff)
	}
	switch {
	case n.off != "":
	case guard && !n.Undescribed && len(n.Needs) == 0 && len(fields) > 0:
		b.notef(phases.CodeNeedsNotGranted, phases.SeverityInfo, n, "%s decides and does not say what it needs to see; plugin %q may not see %s (grants.see)",
			n.ID, n.Plugin, strings.Join(fields, ", "))
	case len(missing) == 0:
	case !guard:
		b.notef(phases.CodeNeedsNotGranted, phases.SeverityWarning, n, "%s needs to see %s, which plugin %q is not granted (grants.see); it runs without",
			n.ID, strings.Join(missing, ", "), n.Plugin)
	case turnOff:
		n.off = ReasonNeedsNotGranted
		b.notef(phases.CodeNeedsNotGranted, phases.SeverityWarning, n, "%s is off: it decides, it needs to see %s, and plugin %q is not granted that (grants.see)",
			n.ID, strings.Join(missing, ", "), n.Plugin)
	default:
		b.operatorf(p, "", "grants.see", "%s decides and needs to see %s, which plugin %q is not granted: it would allow what it was never shown. "+
			"Grant see: [%s], or set subscriptions.%s.without_needs: off to go on without it", n.ID, strings.Join(missing, ", "), n.Plugin, strings.Join(missing, ", "), n.ID)
	}
}

func ungranted(p *Plugin, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !needsGrant(name) || phases.Allows(p.Grants.See, name)
	})
}

// needsGrant reports whether what a hook needs to see must be granted. A tool's name is always sent.
func needsGrant(need string) bool { return need != "tool" && need != phases.NeedsNothing }

// Requested is what the plugin's description asks for, in the terms of grants: the kinds and needs of its hooks, as
// far as the operator left them on, and its tools. The rest of what grants name is not described. It is nil without a
// description.
func (p *Plugin) Requested() *phases.Grants {
	if p.Description == nil {
		return nil
	}
	g := &phases.Grants{}
	for _, hook := range p.Description.Hooks {
		o := p.Overrides[p.Name+"."+hook.Name]
		if o.Enabled != nil && !*o.Enabled {
			continue
		}
		for _, kind := range applied(hook, o).Kinds {
			if kind.NeedsGrant() {
				g.Contribute = append(g.Contribute, string(kind))
			}
		}
		g.See = append(g.See, slices.DeleteFunc(slices.Clone(hook.Needs), func(need string) bool { return !needsGrant(need) })...)
	}
	for i := range p.Description.Tools {
		g.Tools = append(g.Tools, p.Description.Tools[i].Name)
	}
	for _, list := range []*[]string{&g.Contribute, &g.See, &g.Tools} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return g
}

// checkVary refuses a plugin's wish to have answers vary with what it may not see: by being called or not it would
// learn of changes.
func (b *builder) checkVary(p *Plugin, n *node, o phases.Override) {
	if n.Cache == nil || o.Cache != nil {
		return
	}
	for _, name := range n.Cache.Vary {
		field, isInput := strings.CutPrefix(name, "input.")
		if !isInput && name != phases.SeeMetadata {
			continue
		}
		if missing := ungranted(p, []string{field}); len(missing) > 0 {
			b.problem(p, n.ID, "cache", false, n.ID+": cache: vary \""+name+"\" may not be seen by the plugin: grant see: ["+field+"], or set \"cache\" for it under subscriptions", nil)
		}
	}
}

// compile compiles the condition. The operator's sees everything, the plugin's what the plugin may see: whether a
// hook was filtered tells something about its condition.
func (b *builder) compile(p *Plugin, n *node, o phases.Override) {
	if n.When == "" {
		return
	}
	sees := func(name string) bool { return phases.Allows(p.Grants.See, name) }
	if o.When != nil {
		sees = nil
	}
	c, err := cond.Compile(n.When, n.row, sees)
	if err != nil {
		b.problem(p, n.ID, "when", o.When != nil, n.ID+": when: "+err.Error(), err)
		return
	}
	n.Condition = c
}

// checkHook checks the effective subscription and attributes each mistake: to the operator's field without which it
// would not be there, or else to the plugin.
func (b *builder) checkHook(p *Plugin, n *node, proposed phases.Hook, o phases.Override) {
	for _, message := range b.mistakes(n.Hook, n.Undescribed) {
		field, operator := b.blame(message, proposed, o, n.Undescribed)
		b.problem(p, n.ID, field, operator, n.ID+": "+message, nil)
	}
}

func (b *builder) blame(message string, proposed phases.Hook, o phases.Override, undescribed bool) (field string, operator bool) {
	for _, f := range overridable() {
		without := o
		if f.clear(&without) && !slices.Contains(b.mistakes(applied(proposed, without), undescribed), message) {
			return f.name, true
		}
	}
	return "", !slices.Contains(b.mistakes(proposed, undescribed), message)
}

// mistakes lists what is wrong with a hook. The kinds and idempotence of a hook that was never described are unknown,
// which is not a mistake.
func (b *builder) mistakes(h phases.Hook, undescribed bool) []string {
	if row, ok := b.table.Lookup(h.Phase); ok {
		h.Role = defaultRole(&h, row)
	}
	if undescribed {
		h.Idempotent = true
		if len(h.Kinds) == 0 {
			h.Kinds = kindsOf(h.Fallback)
		}
	}
	var messages []string
	for _, err := range phases.ValidateHook(&h, b.table) {
		messages = append(messages, err.Error())
	}
	return messages
}

func kindsOf(list phases.Contributions) []phases.Kind {
	var kinds []phases.Kind
	for _, c := range list {
		if c != nil && !slices.Contains(kinds, phases.KindOf(c)) {
			kinds = append(kinds, phases.KindOf(c))
		}
	}
	return kinds
}

// overrideField is one field of an override that can make a hook invalid. clear removes it, and returns false if it
// is not set.
type overrideField struct {
	name  string
	clear func(*phases.Override) bool
}

// overridable lists the fields in the order in which they are suspected; the phase is last because most other fields
// depend on it.
func overridable() []overrideField {
	return []overrideField{
		{"kinds", func(o *phases.Override) bool { had := o.Kinds != nil; o.Kinds = nil; return had }},
		{"role", func(o *phases.Override) bool { return taken(&o.Role) }},
		{"timeout", func(o *phases.Override) bool { return taken(&o.Timeout) }},
		{"on_failure", func(o *phases.Override) bool { return taken(&o.OnFailure) }},
		{"fallback", func(o *phases.Override) bool { had := o.Fallback != nil; o.Fallback = nil; return had }},
		{"retry", func(o *phases.Override) bool { return taken(&o.Retry) }},
		{"budget", func(o *phases.Override) bool { return taken(&o.Budget) }},
		{"cache", func(o *phases.Override) bool { return taken(&o.Cache) }},
		{"visibility", func(o *phases.Override) bool { return taken(&o.Visibility) }},
		{"phase", func(o *phases.Override) bool { return taken(&o.Phase) }},
	}
}

func taken[T any](field **T) bool {
	had := *field != nil
	*field = nil
	return had
}
