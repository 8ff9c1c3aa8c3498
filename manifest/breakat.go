package manifest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// section names the section at which the prompts part, and who changed it.
func (c *comparison) section() Break {
	b, a := c.before.Sections[c.same:], c.after.Sections[c.same:]
	var out Break
	switch {
	case len(a) == 0:
		out = sectionBreak(causeRemoved, &b[0])
	case len(b) == 0:
		out = sectionBreak(causeInserted, &a[0])
	case b[0].SectionID == a[0].SectionID:
		out = c.changed(&b[0], &a[0])
	default:
		out = c.displaced(b, a)
	}
	out.Because = c.because(&out)
	return out
}

func sectionBreak(cause Cause, s *OutlineSection) Break {
	return Break{Cause: cause, BrokeAt: s.SectionID, Owner: s.author()}
}

// author is who wrote the text, if one did.
func (s *OutlineSection) author() string {
	for _, p := range s.Spans {
		if p.Owner != s.Spans[0].Owner {
			return s.Owner
		}
	}
	if len(s.Spans) > 0 && s.Owner == phases.OwnerBuiltin {
		return s.Spans[0].Owner
	}
	return s.Owner
}

// changed compares a section with the one that was in its place.
func (c *comparison) changed(b, a *OutlineSection) Break {
	if !c.sameText(b, a) && (b.Placement == a.Placement || b.Chars != a.Chars) { // a message has no heading
		out := sectionBreak(causeText, a)
		out.Owner, out.Field = c.writer(b, a)
		return out
	}
	out := sectionBreak(causeMoved, a)
	if out.Field = "stability"; b.Placement != a.Placement {
		out.Field = "placement"
	}
	return out
}

// displaced looks at the sections behind the common ones, which begin with different ids.
func (c *comparison) displaced(b, a []OutlineSection) Break {
	was, is := find(b, a[0].SectionID), find(a, b[0].SectionID)
	switch {
	case is == nil:
		return sectionBreak(causeRemoved, &b[0])
	case was == nil:
		return sectionBreak(causeInserted, &a[0])
	}
	// Both are still there, and one of them has moved.
	first, second := c.changed(&b[0], is), c.changed(was, &a[0])
	gone, come := c.crossed(&b[0], is), c.crossed(was, &a[0])
	switch {
	case gone && (!come || c.mover(b, a) == b[0].SectionID):
		return first
	case come:
		return second
	}
	moved := is
	if c.mover(b, a) == a[0].SectionID {
		moved = &a[0]
	}
	return sectionBreak(causeOrder, moved)
}

// crossed reports whether a section went over a boundary.
func (c *comparison) crossed(b, a *OutlineSection) bool {
	return b.Stability != a.Stability || b.Placement != a.Placement
}

func find(list []OutlineSection, id string) *OutlineSection {
	if i := slices.IndexFunc(list, func(s OutlineSection) bool { return s.SectionID == id }); i >= 0 {
		return &list[i]
	}
	return nil
}

// mover is which of the two sections that now stand in each other's place has moved: the one whose hook changed its
// priority or its contribution, else the one by whose move alone the most of the order is explained.
func (c *comparison) mover(b, a []OutlineSection) string {
	gone, come := b[0].SectionID, a[0].SectionID
	x, y := c.ranked(&b[0], find(a, gone)), c.ranked(find(b, come), &a[0])
	if x != y {
		if x {
			return gone
		}
		return come
	}
	ids := func(list, other []OutlineSection) (out []string) {
		for i := range list {
			if find(other, list[i].SectionID) != nil {
				out = append(out, list[i].SectionID)
			}
		}
		return out
	}
	return displacedOf(ids(b, a), ids(a, b))
}

// displacedOf returns the first of a list that has to be moved to get from one order to the other with few moves.
func displacedOf(before, after []string) string {
	places := make(map[string]int, len(before))
	for i, id := range before {
		places[id] = i
	}
	from := make([]int, len(after))
	for i, id := range after {
		from[i] = places[id]
	}
	stays := longestAscending(from)
	for i, id := range after {
		if !stays[i] && (id == before[0] || id == after[0]) {
			return id
		}
	}
	return before[0]
}

// ranked reports whether a hook behind the section changed its priority, or the contribution that carries one.
func (c *comparison) ranked(b, a *OutlineSection) bool {
	if len(b.Spans) != len(a.Spans) {
		return true
	}
	for i := range b.Spans {
		if c.reranked(&b.Spans[i], &a.Spans[i]) {
			return true
		}
	}
	return false
}

func (c *comparison) reranked(b, a *outlineSpan) bool {
	return b.Priority != a.Priority || c.rewritten(b, a)
}

// rewritten reports whether a contribution is another one. A text without a contribution has no hash.
func (c *comparison) rewritten(b, a *outlineSpan) bool {
	return c.sameKey && b.Hash != a.Hash && b.Hash != 0 && a.Hash != 0
}

// writer says who changed a text, and how. What changed only in length was cut because of something else.
func (c *comparison) writer(b, a *OutlineSection) (owner, field string) {
	was, is := spansByID(b.Spans), spansByID(a.Spans)
	kept := func(list []outlineSpan, other map[spanID]*outlineSpan) (out []string) {
		for i := range list {
			if other[idOf(&list[i])] != nil {
				out = append(out, list[i].Owner+"\x00"+list[i].ContributionID)
			}
		}
		return out
	}
	for i := range b.Spans {
		if is[idOf(&b.Spans[i])] == nil {
			return b.Spans[i].Owner, "removed"
		}
	}
	for i := range a.Spans {
		now := &a.Spans[i]
		switch before := was[idOf(now)]; {
		case before == nil:
			return now.Owner, "added"
		case before.Chars != now.Chars && (now.Hash == 0 || before.Priority == now.Priority && c.rewritten(before, now)):
			return now.Owner, "text"
		}
	}
	if x, y := kept(b.Spans, is), kept(a.Spans, was); !slices.Equal(x, y) {
		return c.reordered(a.Spans, was, x, y), "order"
	}
	for i := range a.Spans {
		if c.rewritten(was[idOf(&a.Spans[i])], &a.Spans[i]) {
			return a.Spans[i].Owner, "text"
		}
	}
	for i := range a.Spans {
		if a.Spans[i].Hash == 0 { // a text of the host, which has no hash
			return a.Spans[i].Owner, "text"
		}
	}
	return a.author(), "text"
}

// reordered is who changed the order of the contributions x into y.
func (c *comparison) reordered(a []outlineSpan, was map[spanID]*outlineSpan, x, y []string) string {
	at := 0
	for x[at] == y[at] {
		at++
	}
	var changed []string
	for i := range a {
		if before := was[idOf(&a[i])]; before != nil && c.reranked(before, &a[i]) {
			changed = append(changed, a[i].Owner)
		}
	}
	if len(changed) > 0 {
		return changed[0]
	}
	owner, _, _ := strings.Cut(displacedOf(x[at:], y[at:]), "\x00")
	return owner
}

type spanID struct{ owner, id string }

func idOf(s *outlineSpan) spanID { return spanID{s.Owner, s.ContributionID} }

func spansByID(list []outlineSpan) map[spanID]*outlineSpan {
	out := make(map[spanID]*outlineSpan, len(list))
	for i := range slices.Backward(list) { // the first of an id counts
		out[idOf(&list[i])] = &list[i]
	}
	return out
}

// tools names the first tool, by name, that differs in the request.
func (c *comparison) tools(cause Cause, before, after []outlineTool) Break {
	was, is := toolsByName(before), toolsByName(after)
	var found Break
	for _, name := range toolNames(before, after) {
		b, a := was[name], is[name]
		field := c.toolField(b, a)
		if field == "" {
			continue
		}
		owner := cmp.Or(a, b).Owner
		next := Break{Cause: cause, Tool: name, Field: field, Owner: owner}
		// A tool that was put into a domain or taken out of it explains that request_tools came or went, and an owner
		// is not in the request at all.
		if found.Cause == "" || found.Field == "owner" && field != "owner" || found.Tool == phases.RequestTools {
			found = next
		}
	}
	if found.Cause != "" {
		found.Because = c.because(&found)
	}
	return found
}

func toolsByName(list []outlineTool) map[string]*outlineTool {
	out := make(map[string]*outlineTool, len(list))
	for i := range list {
		out[list[i].Name] = &list[i]
	}
	return out
}

func toolNames(lists ...[]outlineTool) []string {
	var names []string
	for _, list := range lists {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// toolField says what became of a tool; empty if nothing that the model sees, or who answers it, changed.
func (c *comparison) toolField(b, a *outlineTool) string {
	offered := func(t *outlineTool) bool { return t != nil && t.HiddenDomain == "" }
	switch {
	case !offered(b) && !offered(a):
		return ""
	case b == nil:
		return "added"
	case a == nil:
		return "removed"
	case b.HiddenDomain != a.HiddenDomain:
		return "hidden_domain"
	case c.sameKey && b.Hash != a.Hash:
		return "definition"
	case b.Owner != a.Owner || b.Bundle != a.Bundle:
		return "owner"
	}
	return ""
}

// because says what changed at the same time and explains a change of an owner's section or tool.
func (c *comparison) because(x *Break) Cause {
	b, a := c.before, c.after
	differ := func(x, y string) bool { return x != "" && y != "" && x != y }
	switch {
	case b.Profile != a.Profile && (x.Cause == causeInserted || x.Cause == causeRemoved):
		return causeProfile
	case c.updated(x.Owner):
		return causeVersion
	case x.Owner == phases.OwnerBuiltin && (differ(b.Build, a.Build) || differ(b.CompilerVersion, a.CompilerVersion)):
		return causeBuild
	case b.Config != 0 && a.Config != 0 && b.Config != a.Config:
		return causeConfig
	}
	return ""
}

// updated reports whether a plugin is another version or program than before.
func (c *comparison) updated(name string) bool {
	find := func(list []outlinePlugin) int {
		return slices.IndexFunc(list, func(p outlinePlugin) bool { return p.Name == name })
	}
	i, k := find(c.before.Plugins), find(c.after.Plugins)
	return i >= 0 && k >= 0 && (c.before.Plugins[i].Version != c.after.Plugins[k].Version || c.before.Plugins[i].Program != c.after.Plugins[k].Program)
}
