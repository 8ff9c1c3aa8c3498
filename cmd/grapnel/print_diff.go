package main

import (
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
)

// printDiff prints what the later manifest has that the earlier has not. Groups
// without a difference are left away.
func (a *app) printDiff(from, to *manifest.Manifest, d *manifest.Difference) {
	t := newTable("")
	t.add("from", from.ManifestID, clock(from.CreatedAt), "thread "+from.ThreadID, "turn "+from.TurnID)
	t.add("to", to.ManifestID, clock(to.CreatedAt), "thread "+to.ThreadID, "turn "+to.TurnID)
	a.printTable(t)
	if d.Same {
		a.println("\nthe same sections, granted budgets, policies and tools")
		return
	}
	a.printSectionChanges(from, to, &d.Sections)
	t = newTable("budgets", "budget", "what", ">from ms", ">to ms", ">from chars", ">to chars")
	for _, c := range d.Budgets {
		x, y := grantOf(c.From), grantOf(c.To)
		t.add(c.Name, c.What, x[0], y[0], x[1], y[1])
	}
	a.printTable(t)
	t = newTable("policies", "policy", "what", "from", "to")
	for _, c := range d.Policies {
		t.add(c.Name, c.What, policyText(c.From), policyText(c.To))
	}
	a.printTable(t)
	t = newTable("tools", "tool", "what", "from", "to")
	for _, c := range d.Tools {
		t.add(c.Name, c.What, toolText(c.From), toolText(c.To))
	}
	a.printTable(t)
}

// printSectionChanges prints one row per section that differs, in the later
// prompt's order, then those that are gone. All that became of one section stands
// in its row.
func (a *app) printSectionChanges(from, to *manifest.Manifest, s *manifest.SectionChanges) {
	before, after := byID(from), byID(to)
	header := []string{"section", "what", "owner", ">from chars", ">to chars"}
	counted := slices.ContainsFunc(slices.Concat(from.Sections, to.Sections), func(s manifest.Section) bool { return s.Tokens != nil })
	if counted {
		header = append(header, ">from tokens", ">to tokens")
	}
	t := newTable("sections", header...)
	for _, id := range slices.Concat(to.SectionIDs, s.Removed) {
		what := changeText(id, s)
		if what == "" {
			continue
		}
		x, y := before[id], after[id]
		cells := []any{id, what, ownersText(x, y), charsOf(x), charsOf(y)}
		if counted {
			cells = append(cells, tokensOf(x), tokensOf(y))
		}
		t.add(cells...)
	}
	a.printTable(t)
}

// byID finds sections by their ids.
func byID(m *manifest.Manifest) map[string]*manifest.Section {
	found := make(map[string]*manifest.Section, len(m.Sections))
	for i := range m.Sections {
		found[m.Sections[i].SectionID] = &m.Sections[i]
	}
	return found
}

// changeText is what became of a section; empty if nothing did.
func changeText(id string, s *manifest.SectionChanges) string {
	text := ""
	for _, group := range []struct {
		word string
		ids  []string
	}{{"added", s.Added}, {"removed", s.Removed}, {"changed", s.Changed}, {"moved", s.Moved}, {"re-owned", s.Reowned}} {
		if !slices.Contains(group.ids, id) {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += group.word
	}
	return text
}

// ownersText is whose the section is, and was.
func ownersText(x, y *manifest.Section) string {
	switch {
	case x == nil:
		return y.Owner
	case y == nil || x.Owner == y.Owner:
		return x.Owner
	}
	return x.Owner + " → " + y.Owner
}

// charsOf is the size of a section; empty of one that is not there.
func charsOf(s *manifest.Section) string {
	if s == nil {
		return ""
	}
	return text.Thousands(s.Chars)
}

// tokensOf is the size of a section in tokens; empty where none were counted.
func tokensOf(s *manifest.Section) string {
	if s == nil {
		return ""
	}
	return tokensText(s.Tokens)
}

// grantOf are the cells of a granted budget: time and text.
func grantOf(g *manifest.Grant) [2]string {
	if g == nil {
		return [2]string{}
	}
	cells := [2]string{millis(g.GrantedMS)}
	if g.GrantedChars > 0 {
		cells[1] = text.Thousands(g.GrantedChars)
	}
	return cells
}

// policyText is a policy with whose it is.
func policyText(p *manifest.PolicySlot) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s by %s, priority %d", p.Value, p.Owner, p.Priority)
}

// toolText is whose a tool is, which definition it has, and where it is hidden.
func toolText(t *manifest.ToolSlot) string {
	if t == nil {
		return ""
	}
	text := t.Owner + " " + t.Hash
	if t.BundleID != "" {
		text = fmt.Sprintf("%s (%s) %s", t.Owner, t.BundleID, t.Hash)
	}
	if t.HiddenDomain != "" {
		text += " hidden in " + t.HiddenDomain
	}
	return text
}
