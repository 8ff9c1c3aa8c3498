package lazy

import (
	"slices"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// edit is one file of a chain as the session was told of it, and as it is.
type edit struct {
	before *Version // nil for a new one
	now    *Version // nil for one that is gone
	source *chain.Source
	// reason is empty where there is nothing to tell.
	reason Reason
	// seen says that the model was given this very content before, be it before
	// another one.
	seen bool
	// told says that the model is told by the answer.
	told bool
}

// edits compares the files of a chain with those that the session was told of:
// in chain order, and those that are gone behind them.
func (s *State) edits(now *chain.Chain, rule option.ChangedWhen) []edit {
	var list []edit
	there := map[string]bool{}
	for i := range now.Sources {
		src := &now.Sources[i]
		if !present(src) {
			continue
		}
		there[src.Path] = true
		v := versionOf(src)
		e := edit{now: &v, source: src}
		if at := slices.IndexFunc(s.Initial, func(w Version) bool { return w.Path == v.Path }); at >= 0 {
			before := s.Initial[at]
			e.before = &before
		}
		e.judge(s, rule)
		list = append(list, e)
	}
	for _, v := range s.Initial {
		if !there[v.Path] {
			list = append(list, edit{before: &v, reason: ReasonRemoved})
		}
	}
	return list
}

// judge finds out what there is to tell of a file that is there.
func (e *edit) judge(s *State, rule option.ChangedWhen) {
	last := s.latest(e.now)
	e.seen = s.given(e.now, rule)
	switch {
	case e.before != nil && e.before.same(e.now, rule) && (last == nil || last.SHA256 == e.now.SHA256 || !e.seen):
		// As it was; not as it was before another content that was told.
	case last != nil && !last.Gone && last.same(e.now, rule):
		// Delivered since.
	case e.before != nil:
		e.reason = ReasonUpdated
	case e.source.State != chain.StateDuplicate:
		e.reason = ReasonNew
	}
}

// latest is the version of a file that was delivered last since the beginning;
// nil if none was.
func (s *State) latest(v *Version) *Version {
	for i := len(s.Delivered) - 1; i >= 0; i-- {
		if s.Delivered[i].sameFile(v) {
			return &s.Delivered[i]
		}
	}
	return nil
}

// adopt makes the files of a chain those that the session was told of. What is
// not told, and waits, stays as it was; what was told before is remembered as
// given.
func (s *State) adopt(edits []edit, waits bool) {
	list := []Version{}
	for _, e := range edits {
		switch {
		case e.reason == "" || e.now != nil && (e.told || !waits):
			v := *e.now
			v.Told = e.reason == "" && e.before != nil && e.before.Told && e.before.SHA256 == v.SHA256
			list = append(list, v)
		case e.reason == ReasonRemoved && (e.told || !waits):
		case e.before != nil:
			list = append(list, *e.before)
		}
	}
	for _, e := range edits {
		if e.reason == "" || e.told || !waits {
			s.turnOver(e)
		}
	}
	s.Initial = list
}

// turnOver remembers what was given of a file at the beginning, where that is not
// what is there, and what is given now.
func (s *State) turnOver(e edit) {
	if e.before != nil && e.before.Told && (e.now == nil || e.before.SHA256 != e.now.SHA256) {
		s.remember(*e.before)
	}
	switch {
	case e.now == nil:
		for i := range s.Delivered {
			if s.Delivered[i].sameFile(e.before) {
				s.Delivered[i].Gone = true
			}
		}
	case e.told:
		s.deliver(*e.now)
	}
}

// remember puts a version before all that were delivered.
func (s *State) remember(v Version) {
	v.Told = false
	if !slices.ContainsFunc(s.Delivered, func(w Version) bool { return w.real() == v.real() && w.same(&v, option.ChangedByTimeOrHash) }) {
		s.Delivered = slices.Insert(s.Delivered, 0, v)
	}
}
