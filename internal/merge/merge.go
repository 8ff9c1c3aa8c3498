package merge

import (
	"cmp"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// Merge applies the rules of each kind to the replies of one dispatch, given in
// plan order. Replies of shadow hooks are recorded in Parts and not applied.
// Merge is a pure function: it may run again with more replies of the same
// dispatch, as between transform hooks.
func Merge(row phases.Row, replies []Reply, st State, l Limits) Result {
	m := &merger{row: row, replies: replies, state: st, limits: l.withDefaults()}
	m.collect()
	m.policies()
	m.contexts()
	m.sections()
	m.tools()
	m.decisions()
	m.rewrites()
	m.reminders()
	m.handOn()
	m.finish()
	return m.out
}

// merger is the state of one Merge.
type merger struct {
	row     phases.Row
	replies []Reply
	state   State
	limits  Limits
	// items are all contributions in plan order; claims point into it.
	items []item
	// room is what is left of each reply's text budget.
	room  []textRoom
	diags []placedDiagnostic
	out   Result
}

// item is one contribution on its way through.
type item struct {
	// seq is the place in plan order, then by index: the last word of a rank.
	seq   int
	reply int
	hook  *Hook
	entry *Entry
	// lost says that nothing of it was kept.
	lost bool
	// section is where its text went, and limit what cut it there.
	section string
	limit   phases.Limit
}

func (it *item) id() string { return it.entry.Value.Head().ContributionID }

// priority is the contribution's own.
func (it *item) priority() int { return it.entry.Value.Head().Priority }

// samePriorities reports whether neither of the two is the stronger one.
func (it *item) samePriorities(other *item) bool {
	return it.hook.Priority == other.hook.Priority && it.priority() == other.priority()
}

// compareRank orders by rank, strongest first.
func compareRank(a, b *item) int {
	if c := cmp.Compare(b.hook.Priority, a.hook.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(b.priority(), a.priority()); c != 0 {
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

// claim is an item with its value's own type.
type claim[T phases.Contribution] struct {
	*item
	value T
}

// claims returns the items of one kind, in plan order.
func claims[T phases.Contribution](m *merger) []claim[T] {
	var out []claim[T]
	for i := range m.items {
		if v, ok := m.items[i].entry.Value.(T); ok {
			out = append(out, claim[T]{&m.items[i], v})
		}
	}
	return out
}

// runs calls do for each run of neighbours that same holds together.
func runs[T any](list []T, same func(a, b T) bool, do func(run []T)) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && same(list[0], list[n]) {
			n++
		}
		do(list[:n])
		list = list[n:]
	}
}

// collect lists the items of all hooks that are not shadowed, and what the
// boundary refused.
func (m *merger) collect() {
	n := 0
	for i := range m.replies {
		n += len(m.replies[i].Entries)
	}
	m.items = make([]item, 0, n)
	m.out.Parts = make([]Part, len(m.replies))
	m.out.Merged = phases.Merged{
		Policies: []phases.PolicyEntry{}, Contexts: []phases.ContextEntry{}, Sections: []phases.MergedSection{},
		Tools: []phases.MergedTool{}, Rewrites: []phases.MergedRewrite{}, Reminders: []phases.MergedReminder{},
	}
	m.out.Policies, m.out.Contexts = m.state.Policies, m.state.Contexts
	for i := range m.replies {
		r := &m.replies[i]
		if r.Hook.Shadow {
			continue
		}
		for j := range r.Entries {
			m.items = append(m.items, item{seq: len(m.items), reply: i, hook: r.Hook, entry: &r.Entries[j]})
		}
		for _, d := range r.Dropped {
			m.out.LeftOut = append(m.out.LeftOut, d.LeftOut(r.Hook))
		}
	}
}

// handOn collects the kinds that are passed on as they are. A noop is only
// recorded.
func (m *merger) handOn() {
	for i := range m.items {
		it := &m.items[i]
		switch v := it.entry.Value.(type) {
		case *phases.ManifestDiagnostic:
			d := phases.Diagnostic{Code: v.Code, Severity: v.Severity, Message: v.Message, SafeForUser: v.SafeForUser}.Remark(it.hook.Visibility)
			d.Plugin, d.Subscription = it.hook.Plugin, it.hook.Subscription
			m.diagnose(it.reply, d)
		case *phases.Audit:
			m.out.Audits = append(m.out.Audits, Owned[*phases.Audit]{it.hook, v, it.entry.Hash})
		case *phases.BackgroundJob:
			m.out.Jobs = append(m.out.Jobs, Owned[*phases.BackgroundJob]{it.hook, v, it.entry.Hash})
		}
	}
}

// finish writes what is in plan order: the kept contributions, their sources,
// the ledger's parts and the diagnostics.
func (m *merger) finish() {
	m.out.Contributions = make([]phases.Applied, 0, len(m.items))
	m.out.Sources = make([]phases.HookSource, 0, len(m.items))
	for i := range m.replies {
		r := &m.replies[i]
		m.out.Parts[i].Kept = make([]string, 0, len(r.Entries))
		if r.Hook.Shadow {
			m.out.Parts[i].Kept = Admitted{Entries: r.Entries}.Hashes()
			for j := range r.Entries {
				m.out.Shadowed = append(m.out.Shadowed, r.Entries[j].applied(r.Hook))
			}
		}
	}
	for i := range m.items {
		it := &m.items[i]
		if it.lost {
			continue
		}
		part := &m.out.Parts[it.reply]
		part.Kept = append(part.Kept, it.entry.Hash)
		m.out.Sources = append(m.out.Sources, m.source(it))
		m.out.Contributions = append(m.out.Contributions, it.entry.applied(it.hook))
	}
	slices.SortStableFunc(m.diags, func(a, b placedDiagnostic) int { return cmp.Compare(a.reply, b.reply) })
	for i := range m.diags {
		m.out.Diagnostics = append(m.out.Diagnostics, m.diags[i].Diagnostic)
	}
}

// applied is the entry as an outcome lists it, with what its visibility hides taken out.
func (e *Entry) applied(h *Hook) phases.Applied {
	a := phases.Applied{Kind: e.Value.Kind(), Hook: h.Hook, Subscription: h.Subscription, Plugin: h.Plugin, Hash: e.Hash, Value: e.Value}
	a.Conceal(h.Visibility)
	return a
}
