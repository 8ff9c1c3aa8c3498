package chain

import "github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"

// markTwins leaves of sources that are one file, or have one text, only the
// nearest.
func (r *resolver) markTwins() {
	n := len(r.chain.Sources)
	seen := twins{ids: make(map[fsview.FileID]int, n), sums: make(map[textSum]int, n), paths: map[string]int{}}
	sources := r.chain.Sources
	for i := len(sources) - 1; i >= 0; i-- {
		if s := &sources[i]; s.usable() && !s.origin.untrusted {
			if twin, ok := seen.find(s); ok {
				s.State, s.Reason, s.DuplicateOf = StateDuplicate, string(CodeDuplicate), sources[twin].Path
				s.Text, s.origin = "", origin{}
			} else {
				seen.add(s, i)
			}
		}
	}
	for _, s := range sources {
		if s.State == StateDuplicate {
			r.report(diagnostic(CodeDuplicate, s.Path, "stands nearer in the chain as well, as %s", PrintPath(s.DuplicateOf)))
		}
	}
}

// twins finds sources again by what makes two of them one. Where systems number
// files, those with one real path have one number.
type twins struct {
	paths map[string]int
	ids   map[fsview.FileID]int
	sums  map[textSum]int
}

// add remembers a source by its index.
func (t twins) add(s *Source, at int) {
	t.sums[s.origin.sum] = at
	if s.origin.id != (fsview.FileID{}) {
		t.ids[s.origin.id] = at
	} else {
		t.paths[s.RealPath] = at
	}
}

// find returns the index of a nearer twin.
func (t twins) find(s *Source) (int, bool) {
	if at, ok := t.paths[s.RealPath]; ok {
		return at, true
	}
	if at, ok := t.ids[s.origin.id]; ok {
		return at, true
	}
	at, ok := t.sums[s.origin.sum]
	return at, ok
}
