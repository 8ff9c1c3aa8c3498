package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

type contextClaim = claim[*phases.PromptContext]

// contexts takes texts by rank into what the turn's limits leave. A text that
// does not fit is cut; one that cannot be cut to fit is left out, and a smaller
// one of lower rank may still come in.
func (m *merger) contexts() {
	list := claims[*phases.PromptContext](m)
	if len(list) == 0 {
		return
	}
	list = m.latest(list)
	turn := without(m.state.Contexts, list)
	slots, left := m.limits.Contexts-len(turn), m.limits.ContextChars
	for i := range turn {
		left -= text.Chars(turn[i].Content)
	}
	slices.SortFunc(list, func(a, b contextClaim) int { return compareRank(a.item, b.item) })
	for _, c := range list {
		f := newFragment(c.item, c.value.MaxChars)
		switch {
		case f.blank:
			m.lose(c.item, c.id(), ReasonBlank, f.size)
			continue
		case slots <= 0:
			c.lost = true
			m.overBudget(c.item, c.id(), f.size, fmt.Sprintf("a turn keeps %d contexts", m.limits.Contexts))
			continue
		}
		f.bounds.total = left
		m.claimRoom(&f, unbounded)
		if m.fit(&f); f.fitted.Omitted {
			c.lost = true
			m.overBudget(c.item, c.id(), f.size, noRoom(f.cut.Limit))
			continue
		}
		m.recordCut(&f)
		slots--
		left -= text.Chars(f.fitted.Text)
		m.out.Merged.Contexts = append(m.out.Merged.Contexts, contextEntry(c, &f))
	}
	m.out.Contexts = slices.Concat(turn, m.out.Merged.Contexts)
	slices.SortStableFunc(m.out.Contexts, func(a, b phases.ContextEntry) int { return cmp.Compare(b.Priority, a.Priority) })
}

// noRoom says why a text was left out.
func noRoom(limit phases.Limit) string {
	return fmt.Sprintf("the %s limit leaves no room for anything of it", limit)
}

// contextEntry is the set's entry for a fitted text. What is not rendered is in
// the set too, for later hooks.
func contextEntry(c contextClaim, f *fragment) phases.ContextEntry {
	return phases.ContextEntry{
		ContributionID: c.id(), Domain: c.value.Domain, Content: f.fitted.Text, Priority: c.hook.Priority,
		Owner: c.hook.Subscription, Render: c.value.Rendered(), SourceRefs: c.value.SourceRefs, Truncation: truncation(f.cut),
	}
}

// latest keeps of each plugin's contexts with one id the last in plan order.
func (m *merger) latest(list []contextClaim) []contextClaim {
	if len(list) == 1 {
		return list
	}
	slices.SortFunc(list, func(a, b contextClaim) int {
		return cmp.Or(cmp.Compare(a.hook.Plugin, b.hook.Plugin), cmp.Compare(a.id(), b.id()), cmp.Compare(a.seq, b.seq))
	})
	kept := list[:0]
	runs(list, func(a, b contextClaim) bool { return a.hook.Plugin == b.hook.Plugin && a.id() == b.id() }, func(run []contextClaim) {
		for _, c := range run[:len(run)-1] {
			m.lose(c.item, c.id(), ReasonReplaced, charsOf(c.value))
		}
		kept = append(kept, run[len(run)-1])
	})
	return kept
}

// without returns a copy of the turn's contexts that lacks those which a new
// one of the same plugin and id replaces, whether or not the new one fits: what
// a plugin has taken back is not shown again.
func without(turn []phases.ContextEntry, list []contextClaim) []phases.ContextEntry {
	return slices.DeleteFunc(slices.Clone(turn), func(e phases.ContextEntry) bool {
		plugin, _, _ := strings.Cut(e.Owner, ".") // a plugin's name has no dot
		return slices.ContainsFunc(list, func(c contextClaim) bool { return c.hook.Plugin == plugin && c.id() == e.ContributionID })
	})
}
