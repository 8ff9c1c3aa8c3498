package main

import (
	"cmp"
	"slices"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
)

// printBlame prints one row per turn, and then who did it most.
func (a *app) printBlame(rows []blamedRow, f *filterFlags) error {
	if a.json {
		result := manifestBlame{Turns: []manifest.BlamedTurn{}}
		for i := range rows {
			result.Turns = append(result.Turns, rows[i].BlamedTurn)
		}
		return a.printJSON(result)
	}
	header := []string{">seq", "turn", "manifest", "broke at", "owner", ">tokens behind", "expected"}
	several := f.workspace == "" && slices.ContainsFunc(rows, func(r blamedRow) bool { return r.index.WorkspaceID != rows[0].index.WorkspaceID })
	if several {
		header = slices.Insert(header, 0, "workspace")
	}
	t := newTable("turns of the thread "+clean(f.thread), header...)
	for i := range rows {
		r := &rows[i]
		cells := []any{r.index.Seq, r.TurnID, r.ManifestID, r.BrokeAt, r.Owner, "", expectedText(r.Expected)}
		if r.BrokeAt != "" {
			cells[5] = text.Thousands(r.TokensBehind)
		}
		if several {
			cells = slices.Insert(cells, 0, any(r.index.WorkspaceID))
		}
		t.add(cells...)
	}
	a.printTable(t)
	a.printCulprits(rows)
	return nil
}

// expectedText marks a turn whose cache was lost whatever its sections did.
func expectedText(expected bool) string {
	if expected {
		return "after a compaction"
	}
	return ""
}

// culprit is a section that broke the prefix.
type culprit struct {
	section, owner string
	turns, tokens  int
}

// printCulprits prints which sections broke the prefix, the most expensive
// first. What was expected is nobody's fault.
func (a *app) printCulprits(rows []blamedRow) {
	found := map[[2]string]*culprit{}
	var list []*culprit
	broken := 0
	for i := range rows {
		r := &rows[i]
		if r.BrokeAt == "" || r.Expected {
			continue
		}
		broken++
		key := [2]string{r.BrokeAt, r.Owner}
		if found[key] == nil {
			found[key] = &culprit{section: r.BrokeAt, owner: r.Owner}
			list = append(list, found[key])
		}
		found[key].turns++
		found[key].tokens += r.TokensBehind
	}
	if broken == 0 {
		a.println("\nno turn broke the prefix")
		return
	}
	slices.SortStableFunc(list, func(x, y *culprit) int {
		return cmp.Or(cmp.Compare(y.tokens, x.tokens), cmp.Compare(y.turns, x.turns))
	})
	t := newTable("sections that broke the prefix", "section", "owner", ">turns", ">tokens behind")
	for _, c := range list {
		t.add(c.section, c.owner, c.turns, text.Thousands(c.tokens))
	}
	a.printTable(t)
}
