package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/phases"
)

// Default timeouts: in phases that somebody waits for, and in queue phases.
const (
	defaultTimeout      = time.Second
	defaultQueueTimeout = 30 * time.Second
)

// add makes the effective subscription of a proposal and checks it.
func (b *builder) add(p *Plugin, id string, proposed phases.Hook, o phases.Override, undescribed bool) {
	hook := applied(proposed, o)
	row, ok := b.table.Lookup(hook.Phase)
	if !ok {
		b.broken[id] = true
		b.problem(p, id, "phase", o.Phase != nil, id+": unknown phase \""+string(hook.Phase)+"\""+phases.DidYouMean(string(hook.Phase), b.table.Names()))
		return
	}
	n := &node{
		Subscription: &Subscription{ID: id, Plugin: p.Name, Grants: &p.Grants, Undescribed: undescribed},
		row:          row, operatorAfter: o.After != nil, operatorBefore: o.Before != nil,
	}
	if p.Description != nil {
		n.PluginVersion = p.Description.Version
	}
	hook.Role = defaultRole(hook.Role, row)
	hook.OnFailure.Default = defaultFailure(&hook)
	if hook.Visibility == "" {
		hook.Visibility = phases.VisibilityInternal
	}
	n.Hook, n.Stage, n.FailClosed = hook, hook.Role, hook.OnFailure.Uses(phases.FailClosed)
	b.nodes[id] = n
	b.setTimeout(p, n, proposed.Timeout.D(), o.Timeout)
	if o.Enabled != nil && !*o.Enabled {
		n.off = ReasonOperator
		return // what is switched off may be wrong: that may be why
	}
	b.checkGrants(p, n)
	b.checkHook(p, n, proposed, o)
	b.compile(p, n, o)
}

// applied puts the operator's words over a proposal.
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

func defaultRole(role phases.Role, row phases.Row) phases.Role {
	switch {
	case role != "":
		return role
	case row.Queue:
		return phases.RoleObserve
	default:
		return phases.RoleContribute
	}
}

// defaultFailure is the default word of a policy that names none: those who may
// deny fail closed.
func defaultFailure(h *phases.Hook) phases.FailureWord {
	switch {
	case h.OnFailure.Default != "":
		return h.OnFailure.Default
	case h.Role == phases.RoleValidate || slices.Contains(h.Kinds, phases.KindDecision):
		return phases.FailClosed
	default:
		return phases.BestEffort
	}
}

// setTimeout settles the timeout: the plugin's wish is lowered to the phase's
// budget, the operator's word must be within it.
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
		b.notef(phases.CodeTimeoutLowered, phases.SeverityInfo, n, "%s wants %v and gets %v, the budget of %s", n.ID, wanted, limit, n.Phase)
	}
}

// checkGrants turns a subscription off that declares what its plugin may not
// contribute.
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

// compile compiles the condition.
func (b *builder) compile(p *Plugin, n *node, o phases.Override) {
	if n.When == "" {
		return
	}
	c, err := cond.Compile(n.When, n.row)
	if err != nil {
		b.problem(p, n.ID, "when", o.When != nil, n.ID+": when: "+err.Error())
		return
	}
	n.Condition = c
}

// checkHook checks the subscription as it stands, and finds out whose each
// mistake is: the operator's field without which it would not be there, or else
// the plugin's.
func (b *builder) checkHook(p *Plugin, n *node, proposed phases.Hook, o phases.Override) {
	for _, message := range b.mistakes(n.Hook, n.Undescribed) {
		field, operator := b.blame(message, proposed, o, n.Undescribed)
		b.problem(p, n.ID, field, operator, n.ID+": "+message)
	}
}

func (b *builder) blame(message string, proposed phases.Hook, o phases.Override, undescribed bool) (field string, operator bool) {
	for _, f := range overridable() {
		without := o
		if !f.clear(&without) {
			continue
		}
		if !slices.Contains(b.mistakes(applied(proposed, without), undescribed), message) {
			return f.name, true
		}
	}
	return "", !slices.Contains(b.mistakes(proposed, undescribed), message)
}

// mistakes lists what is wrong with a hook. Of one that was never described
// nobody knows the kinds and whether it is idempotent: that is no mistake.
func (b *builder) mistakes(h phases.Hook, undescribed bool) []string {
	if row, ok := b.table.Lookup(h.Phase); ok {
		h.Role = defaultRole(h.Role, row)
	}
	if undescribed {
		h.Idempotent = true
		if len(h.Kinds) == 0 {
			for _, c := range h.Fallback {
				if c != nil {
					h.Kinds = append(h.Kinds, c.Kind())
				}
			}
		}
	}
	var messages []string
	for _, err := range phases.ValidateHook(&h, b.table) {
		messages = append(messages, err.Error())
	}
	return messages
}

// overrideField is one field of an override that can make a hook invalid.
type overrideField struct {
	name string
	// clear takes the operator's word back; false if there is none.
	clear func(*phases.Override) bool
}

// overridable lists the fields in the order in which they are suspected: the
// phase, with which much else stands and falls, is the last.
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

// taken sets a field to nil and reports whether it was set.
func taken[T any](field **T) bool {
	had := *field != nil
	*field = nil
	return had
}
