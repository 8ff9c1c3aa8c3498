package merge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// Merge applies the rules of each kind to the replies of one dispatch, given in plan order. Replies of shadow hooks
// are recorded in Parts and not applied. Merge is pure and may run again with more replies of the same dispatch.
func Merge(row phases.Row, replies []Reply, st State, l Limits) Result {
	var out Result
	new(Scratch).Merge(&out, row, replies, st, l)
	return out
}

// Merge is [Merge] in the memory of s. Of the result, Parts are there, until s is used again.
func (s *Scratch) Merge(out *Result, row phases.Row, replies []Reply, st State, l Limits) {
	s.Clear()
	*out = Result{}
	m := &merger{Scratch: s, out: out, row: row, replies: replies, state: st, limits: l.withDefaults()}
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
}

type merger struct {
	*Scratch

	row     phases.Row
	replies []Reply
	state   State
	limits  Limits
	out     *Result
}

type item struct {
	seq     int // place in plan order, then by index: the last criterion of a rank
	reply   int
	hook    *Hook
	entry   *Entry
	lost    bool   // nothing of it was kept
	section string // where its text went, and limit what cut it there
	limit   phases.Limit
}

func (it *item) id() string { return it.entry.Value.Head().ContributionID }

func (it *item) priority() int { return it.entry.Value.Head().Priority }

func (it *item) samePriorities(other *item) bool {
	return it.hook.Priority == other.hook.Priority && it.priority() == other.priority()
}

// compareRank orders by rank, strongest first.
func compareRank(a, b *item) int {
	return cmp.Or(cmp.Compare(b.hook.Priority, a.hook.Priority), cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.seq, b.seq))
}

type claim[T phases.Contribution] struct {
	*item
	value T
}

// claims appends the items of one kind to out, in plan order.
func claims[T phases.Contribution](m *merger, out []claim[T]) []claim[T] {
	for i := range m.items {
		if v, ok := m.items[i].entry.Value.(T); ok {
			out = append(out, claim[T]{&m.items[i], v})
		}
	}
	return out
}

// runs calls do for each run of neighbours for which same holds.
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

func (m *merger) collect() {
	n := 0
	for i := range m.replies {
		n += len(m.replies[i].Entries)
	}
	m.items = slices.Grow(m.items, n) // never grows again: much points into it
	m.parts = slices.Grow(m.parts, len(m.replies))[:len(m.replies)]
	m.out.Parts = m.parts
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
			m.out.Omitted = append(m.out.Omitted, d.Omitted(r.Hook))
		}
	}
}

func (m *merger) handOn() {
	for i := range m.items {
		it := &m.items[i]
		switch v := it.entry.Value.(type) {
		case *phases.ManifestDiagnostic:
			m.diagnose(it.reply, remark(it.hook, v))
		case *phases.Audit:
			m.out.Audits = append(m.out.Audits, Owned[*phases.Audit]{it.hook, v, it.entry.Hash})
		case *phases.BackgroundJob:
			m.out.Jobs = append(m.out.Jobs, Owned[*phases.BackgroundJob]{it.hook, v, it.entry.Hash})
		}
	}
}

func (m *merger) finish() {
	m.out.Contributions = make([]phases.Applied, 0, len(m.items))
	m.out.Sources = make([]phases.HookSource, 0, len(m.items))
	hashes := make([]string, 0, len(m.items)) // one array for all parts
	for i := range m.replies {
		r := &m.replies[i]
		m.out.Parts[i].Kept = hashes[:0:0]
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
		hashes = append(hashes, it.entry.Hash)
		part.Kept = slices.Clip(hashes[len(hashes)-len(part.Kept)-1:])
		m.out.Sources = append(m.out.Sources, m.source(it))
		m.out.Contributions = append(m.out.Contributions, it.entry.applied(it.hook))
	}
	slices.SortStableFunc(m.diags, func(a, b placedDiagnostic) int { return cmp.Compare(a.reply, b.reply) })
	for i := range m.diags {
		m.out.Diagnostics = append(m.out.Diagnostics, m.diags[i].Diagnostic)
	}
}

// applied is the entry as an outcome lists it, without what its visibility hides.
func (e *Entry) applied(h *Hook) phases.Applied {
	a := phases.Applied{Kind: phases.KindOf(e.Value), Hook: h.Hook, Subscription: h.Subscription, Plugin: h.Plugin, Hash: e.Hash, Value: e.Value}
	a.Conceal(h.Visibility)
	return a
}

type placedDiagnostic struct {
	reply int
	phases.Diagnostic
}

// diagnose keeps a diagnostic for finish, which puts them in plan order.
func (m *merger) diagnose(reply int, d phases.Diagnostic) {
	m.diags = append(m.diags, placedDiagnostic{reply, d})
}

func (m *merger) omitPart(it *item, id, reason string, chars int) {
	m.out.Omitted = append(m.out.Omitted, phases.Omitted{ID: id, Owner: it.hook.Plugin, Reason: reason, Chars: chars})
}

func (m *merger) lose(it *item, id, reason string, chars int) {
	it.lost = true
	m.omitPart(it, id, reason, chars)
}

// overBudget reports what a limit omitted; unlike a conflict that is not a failure.
func (m *merger) overBudget(it *item, id string, chars int, why string) {
	m.omitPart(it, id, ReasonBudget, chars)
	m.diagnose(it.reply, phases.Diagnostic{
		Code: phases.CodeOmitted, Severity: phases.SeverityWarning, Slot: id, Plugin: it.hook.Plugin, Subscription: it.hook.Subscription,
		Message:    fmt.Sprintf("%q of %d characters was omitted: %s", id, chars, why),
		Visibility: it.hook.Visibility,
	})
}

// conflict records that a subscription loses a slot to another one, once for each slot and reply.
func (m *merger) conflict(loser *item, other, slot, what string) {
	if n := len(m.out.Losses); n > 0 && m.out.Losses[n-1].Reply == loser.reply && m.out.Losses[n-1].Slot == slot {
		return
	}
	sub := loser.hook.Subscription
	m.out.Losses = append(m.out.Losses, Loss{Reply: loser.reply, Subscription: sub, Cause: phases.CauseConflict, Slot: slot})
	m.diagnose(loser.reply, phases.Diagnostic{
		Code: string(phases.CauseConflict), Severity: phases.SeverityWarning, Plugin: loser.hook.Plugin,
		Subscription: sub, OtherSubscription: other, Slot: slot, Visibility: loser.hook.Visibility,
		Message: fmt.Sprintf("%s %q belongs to %s: what %s contributed to it was dropped", what, slot, other, sub),
	})
}

func (m *merger) source(it *item) phases.HookSource {
	word, refs := "none", 0
	switch v := it.entry.Value.(type) {
	case *phases.PromptSection:
		word, refs = truncationWord(it.limit, selfCut(v)), len(v.SourceRefs)
	case *phases.PromptContext:
		word, refs = truncationWord(it.limit, false), len(v.SourceRefs)
	}
	return phases.HookSource{
		HookID: it.hook.Hook, SubscriptionID: it.hook.Subscription, ContributionID: it.id(), ContributionHash: it.entry.Hash,
		ContributionKind: phases.KindOf(it.entry.Value), SectionID: it.section, Phase: m.row.Phase, Priority: it.hook.Priority,
		SourceCount: refs, Truncation: word, Plugin: it.hook.Plugin, PluginVersion: it.hook.PluginVersion,
		CachedFrom: m.replies[it.reply].CachedFrom,
	}
}

// selfCut reports whether the plugin says that it cut the text itself.
func selfCut(c *phases.PromptSection) bool { return c.Cut != nil && c.Cut.Kept < c.Cut.Original }

// truncationWord says whether the hook's own limits cut a text, the prompt's, or both.
func truncationWord(limit phases.Limit, self bool) string {
	hook := self || limit == phases.LimitContribution || limit == phases.LimitSubscription
	prompt := limit == phases.LimitSection || limit == phases.LimitTotal
	switch {
	case hook && prompt:
		return "hook_and_prompt"
	case hook:
		return "hook"
	case prompt:
		return "prompt"
	}
	return "none"
}
