package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
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
		b.problem(p, id, "phase", id+": unknown phase \""+string(hook.Phase)+"\""+suggest.DidYouMean(string(hook.Phase), b.table.Names()), nil)
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

// applied returns the proposal with the operator's fields in place of the plugin's.
func applied(h phases.Hook, o phases.Override) phases.Hook {
	hook, override := reflect.ValueOf(&h).Elem(), reflect.ValueOf(o)
	for i := range override.NumField() {
		value, field := override.Field(i), hook.FieldByName(override.Type().Field(i).Name)
		if value.IsZero() || !field.IsValid() {
			continue
		}
		if value.Type() != field.Type() {
			value = value.Elem()
		}
		field.Set(value)
	}
	return h
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
		b.problemf(p, n.ID, "timeout", "%s: timeout %v is more than the budget of %s, %v", n.ID, wanted, n.Phase, limit)
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
	n.Facts = seesFacts(n)
	missing, fields := ungranted(p, n.Needs), unseenFields(n)
	guard := n.Decides() && !n.Shadow && n.Stage != phases.RoleObserve
	turnOff := o.WithoutNeeds != nil && *o.WithoutNeeds == phases.TurnOff
	if o.WithoutNeeds != nil && !turnOff {
		b.problemf(p, n.ID, "without_needs", "%s: without_needs %q: it takes the word %s", n.ID, *o.WithoutNeeds, phases.TurnOff)
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
		b.problemf(p, "", "grants.see", "%s decides and needs to see %s, which plugin %q is not granted: it would allow what it was never shown. "+
			"Grant see: [%s], or set subscriptions.%s.without_needs: off to go on without it", n.ID, strings.Join(missing, ", "), n.Plugin, strings.Join(missing, ", "), n.ID)
	}
}

// unseenFields are the fields that a hook without declared needs may miss: facts are only for who names them.
func unseenFields(n *node) []string {
	if phases.Visible(n.row) == nil && !phases.Allows(n.Grants.See, "*") {
		return []string{"what is not named there"}
	}
	return slices.DeleteFunc(slices.Clone(n.Withheld), func(name string) bool {
		return name == phases.SeeFacts || slices.Contains(phases.SeenSets(), name)
	})
}

// seesFacts reports whether a hook needs the facts of calls and may see them. If it does not declare its needs, a grant by
// name counts; a wildcard does not.
func seesFacts(n *node) bool {
	named := n.Needs
	if len(named) == 0 {
		named = n.Grants.See
	}
	return slices.Contains(named, phases.SeeFacts) && phases.Allows(n.Grants.See, phases.SeeFacts) && slices.Contains(phases.Visible(n.row), phases.SeeFacts)
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
		kinds := hook.Kinds
		if o.Kinds != nil {
			kinds = o.Kinds
		}
		for _, kind := range kinds {
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
			b.problem(p, n.ID, "cache", n.ID+": cache: vary \""+name+"\" may not be seen by the plugin: grant see: ["+field+"], or set \"cache\" for it under subscriptions", nil)
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
		b.problem(p, n.ID, "when", n.ID+": when: "+err.Error(), err)
		return
	}
	n.Condition = c
}

// checkHook checks the effective subscription and attributes each mistake: to the operator's field without which it
// would not be there, or else to the plugin.
func (b *builder) checkHook(p *Plugin, n *node, proposed phases.Hook, o phases.Override) {
	for _, message := range b.mistakes(n.Hook, n.Undescribed) {
		b.problem(p, n.ID, b.blame(message, proposed, o, n.Undescribed), n.ID+": "+message, nil)
	}
}

// blame returns the field of an override that makes a hook invalid, in the order in which they are suspected; the phase
// is last because most other fields depend on it.
func (b *builder) blame(message string, proposed phases.Hook, o phases.Override, undescribed bool) (field string) {
	for _, name := range []string{"kinds", "role", "timeout", "on_failure", "fallback", "retry", "budget", "cache", "visibility", "phase"} {
		without := o
		value := reflect.ValueOf(&without).Elem().FieldByNameFunc(func(n string) bool { return strings.EqualFold(n, strings.ReplaceAll(name, "_", "")) })
		if value.IsZero() {
			continue
		}
		value.SetZero()
		if !slices.Contains(b.mistakes(applied(proposed, without), undescribed), message) {
			return name
		}
	}
	return ""
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
