package merge

import (
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

type rewriteClaim = claim[*phases.Rewrite]

// rewrites keeps the rewrites in plan order, also several on one path: a later
// one sees what an earlier one did. At equal priorities a path can be written
// only once, and neither may another subscription write above or below it: that
// would be last-writer-wins under another name. Appending to an array takes
// nobody's place and is no conflict.
func (m *merger) rewrites() {
	list := claims[*phases.Rewrite](m)
	var taken writes
	if len(list) > 1 {
		taken = writes{at: map[place]*item{}, below: map[place]*item{}}
	}
	for _, c := range list {
		if len(list) > 1 {
			if other := taken.holder(c); other != nil {
				m.lose(c.item, c.id(), string(phases.CauseConflict), 0)
				m.conflict(c.item, other.hook.Subscription, shownPath(c.value.Path), "path")
				continue
			}
			taken.add(c)
		}
		m.out.Merged.Rewrites = append(m.out.Merged.Rewrites, phases.MergedRewrite{
			Path: c.value.Path, Value: c.value.Value, Owner: c.hook.Subscription,
		})
	}
}

// place is a path at one pair of priorities; only equal ones can conflict.
type place struct {
	path              string
	hookPrio, ownPrio int
}

// writes is an index of kept rewrites, so that a hook that sends many costs
// little. Pointers have at most phases.MaxJSONDepth tokens.
type writes struct {
	at map[place]*item
	// below has the first writer below a path. A subscription's rewrites stand
	// together in plan order, so if that one is its own, there is no other.
	below map[place]*item
}

// holder returns who already has the place of c, or nil.
func (w writes) holder(c rewriteClaim) *item {
	p := place{c.value.Path, c.hook.Priority, c.priority()}
	if it := w.at[p]; it != nil && !appends(p.path) {
		return it
	}
	sub := c.hook.Subscription
	for parent, ok := above(p.path); ok; parent, ok = above(parent) {
		if it := w.at[place{parent, p.hookPrio, p.ownPrio}]; it != nil && it.hook.Subscription != sub {
			return it
		}
	}
	if it := w.below[p]; it != nil && it.hook.Subscription != sub {
		return it
	}
	return nil
}

// add records c as a writer of its path, below all paths above.
func (w writes) add(c rewriteClaim) {
	p := place{c.value.Path, c.hook.Priority, c.priority()}
	if w.at[p] == nil {
		w.at[p] = c.item
	}
	for parent, ok := above(p.path); ok; parent, ok = above(parent) {
		key := place{parent, p.hookPrio, p.ownPrio}
		if w.below[key] == nil {
			w.below[key] = c.item
		}
	}
}

// above returns the pointer to what contains the place of path.
func above(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", false
	}
	return path[:i], true
}

// appends reports whether the path ends in "-".
func appends(path string) bool { return strings.HasSuffix(path, "/"+appendToken) }

// shownPath is a path as a diagnostic names it: that of ordinary fields. Any other
// could be a sentence of the plugin's.
func shownPath(path string) string {
	if path == "" || phases.ValidID(path[1:]) {
		return path
	}
	return "(a path)"
}
