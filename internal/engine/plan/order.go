package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

type edge struct {
	to       *node  // the other end
	by       *node  // the node that declared it
	field    string // "after" or "before"
	operator bool
}

func (b *builder) order() {
	all := slices.SortedFunc(maps.Values(b.nodes), func(x, y *node) int { return cmp.Compare(x.ID, y.ID) })
	for _, n := range all {
		if n.Undescribed {
			continue // its role is a guess
		}
		for _, dep := range n.After {
			b.link(n, dep, "after", n.operatorAfter)
		}
		for _, dep := range n.Before {
			b.link(n, dep, "before", n.operatorBefore)
		}
	}
	stuck := layers(all)
	if untie(stuck) {
		stuck = layers(all)
	}
	b.cycles(stuck)
}

// untie drops what subscriptions that are off say about order where that closes a cycle, so that switching one off
// resolves it.
func untie(stuck []*node) (changed bool) {
	for _, n := range stuck {
		n.next = slices.DeleteFunc(n.next, func(e edge) bool {
			if e.by.off == "" || !reach(e.to, following)[n] {
				return false
			}
			e.to.previous = slices.DeleteFunc(e.to.previous, func(back edge) bool { return back.to == n })
			changed = true
			return true
		})
	}
	return changed
}

func following(n *node) []edge { return n.next }
func preceding(n *node) []edge { return n.previous }

func (b *builder) link(n *node, dep, field string, operator bool) {
	id, soft := strings.CutSuffix(dep, "?")
	other := b.resolve(n, id, field, soft)
	if other == nil {
		return
	}
	from, to := other, n
	if field == "before" {
		from, to = n, other
	}
	if slices.ContainsFunc(from.next, func(e edge) bool { return e.to == to }) {
		return
	}
	from.next = append(from.next, edge{to, n, field, operator})
	to.previous = append(to.previous, edge{from, n, field, operator})
}

// resolve finds what a dependency names; nil if it does not count.
func (b *builder) resolve(n *node, id, field string, soft bool) *node {
	other := b.nodes[id]
	name, _, _ := strings.Cut(id, ".")
	p := b.byName[name]
	var wrong string
	switch {
	case p != nil && p.Description == nil:
		if !soft && n.off == "" {
			b.notef(codeSoftMissing, phases.SeverityWarning, n, "%s stands %s %s, whose plugin has not described itself; it counts as absent", n.ID, field, id)
		}
		return nil
	case other == nil && (soft || b.broken[id]):
		return nil
	case other == nil:
		wrong = "which does not exist" + b.nearest(id, n.Phase)
	case other.Phase != n.Phase && soft:
		return nil
	case other.Phase != n.Phase:
		wrong = "which belongs to the phase " + string(other.Phase) + ", not to " + string(n.Phase)
	case other.Stage != n.Stage:
		wrong = "which runs in the stage " + string(other.Stage) + ", not in " + string(n.Stage) + "; stages are ordered anyway"
	default:
		return other
	}
	if n.off == "" {
		b.problem(b.byName[n.Plugin], n.ID, field, n.ID+": stands "+field+" \""+id+"\", "+wrong, nil)
	}
	return nil
}

// layers gives each node the first layer behind all that it waits for, and returns the nodes that are on or behind a
// cycle. A node that is off passes order on and has no layer of its own.
func layers(all []*node) (stuck []*node) {
	waits := make(map[*node]int, len(all))
	var ready []*node
	for _, n := range all {
		n.Layer, waits[n] = 0, len(n.previous)
		if waits[n] == 0 {
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		n := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		behind := n.Layer
		if n.off == "" {
			behind++
		}
		for _, e := range n.next {
			e.to.Layer = max(e.to.Layer, behind)
			if waits[e.to]--; waits[e.to] == 0 {
				ready = append(ready, e.to)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(n *node) bool { return waits[n] == 0 })
}

// cycles records one problem for each knot of cycles: the shortest cycle through its first id.
func (b *builder) cycles(stuck []*node) {
	reported := map[*node]bool{}
	for _, n := range stuck {
		if reported[n] {
			continue
		}
		cycle := shortestCycle(n)
		if cycle == nil {
			continue // it only waits for a cycle
		}
		for _, m := range knot(n) {
			reported[m] = true
		}
		path := []string{n.ID}
		culprit := cycle[0]
		for _, e := range cycle {
			path = append(path, e.to.ID)
			if e.operator && !culprit.operator {
				culprit = e
			}
		}
		b.problem(b.byName[culprit.by.Plugin], culprit.by.ID, culprit.field, "dependencies go in a cycle: "+strings.Join(path, " -> "), nil)
	}
}

// shortestCycle returns the edges of a shortest cycle through n; nil if there is none.
func shortestCycle(n *node) []edge {
	type arrival struct {
		from *node
		by   edge
	}
	came := map[*node]arrival{}
	for queue := []*node{n}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, e := range at.next {
			if _, seen := came[e.to]; seen {
				continue
			}
			came[e.to] = arrival{at, e}
			queue = append(queue, e.to)
		}
	}
	end, ok := came[n]
	if !ok {
		return nil
	}
	way := []edge{end.by}
	for end.from != n {
		end = came[end.from]
		way = append(way, end.by)
	}
	slices.Reverse(way)
	return way
}

func knot(n *node) []*node {
	forth, back := reach(n, following), reach(n, preceding)
	var both []*node
	for m := range forth {
		if back[m] {
			both = append(both, m)
		}
	}
	return both
}

// reach returns n and all nodes that the edges lead to.
func reach(n *node, edges func(*node) []edge) map[*node]bool {
	seen := map[*node]bool{n: true}
	todo := []*node{n}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, e := range edges(at) {
			if !seen[e.to] {
				seen[e.to] = true
				todo = append(todo, e.to)
			}
		}
	}
	return seen
}

func (b *builder) plan() *Plan {
	p := &Plan{byName: map[phases.Phase]*Phase{}, byID: map[string]*Subscription{}}
	byPhase := map[phases.Phase][]*node{}
	for id, n := range b.nodes {
		p.byID[id] = n.Subscription
		byPhase[n.Phase] = append(byPhase[n.Phase], n)
	}
	for _, row := range b.table.Rows() {
		ph := &Phase{Row: row, Budget: b.limit(row), Require: b.required[row.Phase]}
		ph.fill(byPhase[row.Phase])
		p.phases = append(p.phases, ph)
		p.byName[row.Phase] = ph
	}
	return p
}

func (ph *Phase) fill(nodes []*node) {
	roles := phases.Roles()
	slices.SortFunc(nodes, func(x, y *node) int {
		return cmp.Or(
			cmp.Compare(slices.Index(roles, x.Stage), slices.Index(roles, y.Stage)),
			cmp.Compare(x.Layer, y.Layer),
			cmp.Compare(y.Priority, x.Priority),
			cmp.Compare(x.Plugin, y.Plugin),
			cmp.Compare(x.ID, y.ID),
		)
	})
	for i, n := range nodes {
		n.Index = i
		ph.Expected = append(ph.Expected, n.Subscription)
		if n.off != "" {
			ph.Off = append(ph.Off, Off{n.Subscription, n.off})
			continue
		}
		if last := len(ph.Stages) - 1; last < 0 || ph.Stages[last].Role != n.Stage {
			ph.Stages = append(ph.Stages, Stage{Role: n.Stage})
		}
		ph.Stages[len(ph.Stages)-1].add(n.Subscription)
	}
}

func (s *Stage) add(sub *Subscription) {
	if len(s.Layers) <= sub.Layer {
		s.Layers = append(s.Layers, nil)
	}
	last := len(s.Layers) - 1
	s.Layers[last] = append(s.Layers[last], sub)
	s.FailClosed = s.FailClosed || sub.FailClosed && !sub.Shadow // a shadow hook fails nothing
}

// judgedEarlier warns of hooks that decide before another one may rewrite what they judge.
func (b *builder) judgedEarlier(p *Plan) {
	for _, ph := range p.Phases() {
		for i, sub := range ph.Expected {
			if !sub.Decides() || sub.Shadow || sub.Stage == phases.RoleValidate || b.nodes[sub.ID].off != "" {
				continue
			}
			from := i + 1
			if sub.Stage == phases.RoleContribute {
				from = 0 // hooks of this stage run at the same time
			}
			for _, other := range ph.Expected[from:] {
				if other != sub && other.rewritesBehind(sub) && b.nodes[other.ID].off == "" {
					b.notef(phases.CodeJudgedEarlier, phases.SeverityWarning, b.nodes[sub.ID],
						"%s decides before %s may rewrite what it judges; give it the role validate, or %s the role transform", sub.ID, other.ID, other.ID)
					break
				}
			}
		}
	}
}

// rewritesBehind reports whether s may rewrite what judge has judged.
func (s *Subscription) rewritesBehind(judge *Subscription) bool {
	if s.Shadow || !slices.Contains(s.Kinds, phases.KindRewrite) {
		return false
	}
	return s.Stage == phases.RoleContribute || s.Stage == phases.RoleTransform && judge.Stage == phases.RoleTransform
}
