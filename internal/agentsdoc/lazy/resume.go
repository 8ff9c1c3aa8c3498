package lazy

import (
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
)

// What names a kind of difference of a resumed session.
type What string

// The kinds.
const (
	WhatDir     What = "cwd"
	WhatRoot    What = "root"
	WhatMarkers What = "markers"
	WhatUpdated What = "updated"
	WhatAdded   What = "added"
	WhatRemoved What = "removed"
)

// Difference is one difference.
type Difference struct {
	What What `json:"what"`
	// From and To are paths, lists of markers as JSON, or, of files, the hashes of their versions; empty for none.
	From  string `json:"from"`
	To    string `json:"to"`
	Path  string `json:"path"`  // the exact path of a file
	Named bool   `json:"named"` // the reminder names it; it only counts differences beyond a limit
}

// Resumed is the answer of [State.Resume].
type Resumed struct {
	Changed bool         `json:"changed"`
	Root    string       `json:"root"`
	Changes []Difference `json:"changes"`
	// Reminder is Message with its tag; empty if nothing changed.
	Reminder string `json:"reminder"`

	Message reminder.Message `json:"-"` // notifies the model
}

// Resume reports what differs from what the session knew when it was left, given the current chain of its working
// directory, and adopts that. Files are reported by their paths, and those count as delivered: the others are
// delivered when they are touched.
func (s *State) Resume(now chain.Chain) Resumed { return s.goOn(now, false) }

// Move is Resume in the words for a running session whose working directory or root has changed. Its reminder is
// empty if nothing differs.
func (s *State) Move(now chain.Chain) Resumed { return s.goOn(now, true) }

func (s *State) goOn(now chain.Chain, moved bool) Resumed {
	edits := s.edits(&now, nestedOptions(now.Options, now.Root).Resolver.ChangedWhen)
	message := reminder.StyleOf(now.Options.Layout).ResumeDiff(reminder.Resumed{
		DirFrom: s.Dir, DirTo: now.Dir, RootFrom: s.Root, RootTo: now.Root,
		MarkersFrom: s.Markers, MarkersTo: now.Options.Markers, Moved: moved,
		Look: nearestFirst(edits, func(e *edit) bool { return e.now != nil }),
		Gone: nearestFirst(edits, func(e *edit) bool { return e.now == nil }),
	})
	changes := append(s.context(&now), rows(edits)...)
	out := Resumed{Changed: len(changes) > 0, Root: now.Root, Changes: changes, Message: message, Reminder: message.Tagged()}

	s.adopt(edits, false)
	s.Dir, s.Markers = now.Dir, clone(now.Options.Markers)
	if s.Root != now.Root {
		s.Root = now.Root
		outside := func(path string) bool { return s.Root == "" || !chain.Within(s.Root, path) }
		s.Queue, s.Covered = slices.DeleteFunc(s.Queue, outside), slices.DeleteFunc(s.Covered, outside)
	}
	s.coverInitial()
	return out
}

func (s *State) context(now *chain.Chain) []Difference {
	list := func(names []string) string {
		data, _ := json.Marshal(clone(names)) //nolint:errchkjson // strings always can
		return string(data)
	}
	return slices.DeleteFunc([]Difference{
		{What: WhatDir, From: s.Dir, To: now.Dir, Named: true},
		{What: WhatRoot, From: s.Root, To: now.Root, Named: true},
		{What: WhatMarkers, From: list(s.Markers), To: list(now.Options.Markers), Named: true},
	}, func(d Difference) bool { return d.From == d.To })
}

// nearestFirst marks the nearest edits of a kind as reported, as many as a reminder has lines for, and returns all of
// the kind, those first.
func nearestFirst(edits []edit, kind func(*edit) bool) []reminder.File {
	var first, rest []reminder.File
	for i := range slices.Backward(edits) {
		e := &edits[i]
		if e.reason == "" || !kind(e) {
			continue
		}
		f := e.file(block{})
		if e.reported = len(first) < reminder.MaxDetails; e.reported {
			first = append(first, f.reminder(block{}))
		} else {
			rest = append(rest, f.reminder(block{}))
		}
	}
	slices.Reverse(first)
	return append(first, rest...)
}

// reminder is a file as a reminder names it.
func (f *File) reminder(b block) reminder.File {
	return reminder.File{Path: f.Path, MTimeMs: f.MTimeMs, Change: f.Reason, Block: b.text}
}

func rows(edits []edit) []Difference {
	whats := map[reminder.Change]What{reminder.New: WhatAdded, reminder.Updated: WhatUpdated, reminder.Removed: WhatRemoved}
	var list []Difference
	for _, e := range edits {
		if e.reason == "" {
			continue
		}
		row := Difference{What: whats[e.reason], Named: e.reported}
		if e.before != nil {
			row.Path, row.From = e.before.Path, e.before.SHA256
		}
		if e.now != nil {
			row.Path, row.To = e.now.Path, e.now.SHA256
		}
		list = append(list, row)
	}
	return list
}

// edit is one file of a chain as the session knew it, and as it is.
type edit struct {
	before *Version // nil for a new one
	now    *Version // nil for a removed one
	source *chain.Source

	reason   reminder.Change // empty without a change
	seen     bool            // the model was given this very content at some time
	reported bool            // the answer notifies the model
}

// edits compares the files of a chain with those that the session knows: in chain order, followed by the removed
// ones.
func (s *State) edits(now *chain.Chain, rule chain.ChangedWhen) []edit {
	var list []edit
	applies := map[string]bool{}
	for i := range now.Sources {
		src := &now.Sources[i]
		applies[src.Path] = src.Reason == string(chain.CodeReadByAgent) // it applies, but is not ours any more
		if !present(src) {
			continue
		}
		applies[src.Path] = true
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
		if !applies[v.Path] {
			list = append(list, edit{before: &v, reason: reminder.Removed})
		}
	}
	return list
}

// judge sets the reason to report a file that exists.
func (e *edit) judge(s *State, rule chain.ChangedWhen) {
	var last *Version // that was delivered since the beginning
	for i := range s.Delivered {
		if s.Delivered[i].sameFile(e.now) {
			last = &s.Delivered[i]
		}
	}
	e.seen = s.given(e.now, rule)
	switch {
	case e.before != nil && e.before.same(e.now, rule) && (last == nil || last.SHA256 == e.now.SHA256 || !e.seen):
		// As it was; not as it was before another reported content.
	case last != nil && !last.Gone && last.same(e.now, rule):
		// Delivered since.
	case e.before != nil:
		e.reason = reminder.Updated
	case e.source.State != chain.StateDuplicate:
		e.reason = reminder.New
	}
}

// adopt makes the files of a chain those that the session knows. What is not reported, and waits, stays as it was;
// what was reported before is remembered as given.
func (s *State) adopt(edits []edit, waits bool) {
	list := []Version{}
	for _, e := range edits {
		switch {
		case e.reason == "" || e.now != nil && (e.reported || !waits):
			v := *e.now
			v.InPrompt = e.reason == "" && e.before != nil && e.before.InPrompt && e.before.SHA256 == v.SHA256
			list = append(list, v)
		case e.reason == reminder.Removed && (e.reported || !waits):
		case e.before != nil:
			list = append(list, *e.before)
		}
	}
	for _, e := range edits {
		if e.reason == "" || e.reported || !waits {
			s.turnOver(e)
		}
	}
	s.Initial = list
}

// turnOver remembers what was given of a file at the beginning, if that has changed, and what is given now.
func (s *State) turnOver(e edit) {
	if e.before != nil && e.before.InPrompt && (e.now == nil || e.before.SHA256 != e.now.SHA256) {
		s.remember(*e.before)
	}
	switch {
	case e.now == nil:
		for i := range s.Delivered {
			if s.Delivered[i].sameFile(e.before) {
				s.Delivered[i].Gone = true
			}
		}
	case e.reported:
		s.deliver(*e.now)
	}
}

// remember puts a version before all that were delivered.
func (s *State) remember(v Version) {
	v.InPrompt = false
	if !slices.ContainsFunc(s.Delivered, func(w Version) bool { return w.real() == v.real() && w.same(&v, chain.ChangedByTimeOrHash) }) {
		s.Delivered = slices.Insert(s.Delivered, 0, v)
	}
}
