package lazy

import (
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/reminder"
)

// What names a thing that a resumed session differs in.
type What string

// The things.
const (
	WhatDir     What = "cwd"
	WhatRoot    What = "root"
	WhatMarkers What = "markers"
	WhatUpdated What = "updated"
	WhatAdded   What = "added"
	WhatRemoved What = "removed"
)

// Difference is one thing that is not as it was.
type Difference struct {
	What What `json:"what"`
	// From and To are paths, lists of markers as JSON, or, of files, the hashes
	// of their versions; empty where there was or is none.
	From string `json:"from"`
	To   string `json:"to"`
	// Path is that of a file, exact.
	Path string `json:"path"`
	// Told says whether the reminder names it: one that has many counts them.
	Told bool `json:"told"`
}

// Resumed is the answer of [State.Resume].
type Resumed struct {
	Changed bool `json:"changed"`
	// Root is the root as it is now.
	Root    string       `json:"root"`
	Changes []Difference `json:"changes"`
	// Reminder is Message with its tag. After [State.Resume] it is never empty:
	// that nothing changed is told, too.
	Reminder string `json:"reminder"`

	// Message is what tells the model.
	Message reminder.Message `json:"-"`
}

// Resume tells what differs from what the session was left with, given the chain
// of its working folder as it is now, and makes that the session's own. Files
// are told by their paths, and count as delivered if they are: the others are
// delivered when they are touched.
func (s *State) Resume(now chain.Chain) Resumed { return s.goOn(now, false) }

// Move is Resume in the words for a session that was not left, and goes on in
// another working folder, or one whose root is another by now. Its reminder is
// empty where nothing differs.
func (s *State) Move(now chain.Chain) Resumed { return s.goOn(now, true) }

// goOn is Resume or Move.
func (s *State) goOn(now chain.Chain, moved bool) Resumed {
	style := reminder.StyleOf(now.Options.Layout)
	edits := s.edits(&now, nestedOptions(now.Options, now.Root).Resolver.ChangedWhen)
	told := reminder.Resumed{
		DirFrom: s.Dir, DirTo: now.Dir, RootFrom: s.Root, RootTo: now.Root,
		MarkersFrom: s.Markers, MarkersTo: now.Options.Markers, Moved: moved,
	}
	told.Look = tellNearest(edits, func(e *edit) bool { return e.now != nil })
	told.Gone = tellNearest(edits, func(e *edit) bool { return e.now == nil })
	out := Resumed{Root: now.Root, Changes: append(s.context(&now), rows(edits)...)}
	out.Changed = len(out.Changes) > 0
	out.Message = style.ResumeDiff(told)
	out.Reminder = out.Message.Tagged()

	s.adopt(edits, false)
	s.Dir, s.Markers = now.Dir, clone(now.Options.Markers)
	if s.Root != now.Root {
		s.Root = now.Root
		outside := func(path string) bool { return s.Root == "" || !within(s.Root, path) }
		s.Queue, s.Covered = slices.DeleteFunc(s.Queue, outside), slices.DeleteFunc(s.Covered, outside)
	}
	s.coverInitial()
	return out
}

// context are the rows of all but files.
func (s *State) context(now *chain.Chain) []Difference {
	rows := []Difference{}
	if s.Dir != now.Dir {
		rows = append(rows, Difference{What: WhatDir, From: s.Dir, To: now.Dir, Told: true})
	}
	if s.Root != now.Root {
		rows = append(rows, Difference{What: WhatRoot, From: s.Root, To: now.Root, Told: true})
	}
	if !slices.Equal(s.Markers, now.Options.Markers) {
		rows = append(rows, Difference{What: WhatMarkers, From: listText(s.Markers), To: listText(now.Options.Markers), Told: true})
	}
	return rows
}

// listText is a list as JSON.
func listText(list []string) string {
	data, err := json.Marshal(clone(list))
	if err != nil {
		return "" // cannot be: these are strings
	}
	return string(data)
}

// tellNearest marks the nearest edits of a kind as told, as many as a reminder
// has lines for, and returns all of the kind, those first.
func tellNearest(edits []edit, kind func(*edit) bool) []reminder.File {
	var first, rest []reminder.File
	for i := range slices.Backward(edits) {
		e := &edits[i]
		switch {
		case e.reason == "" || !kind(e):
		case len(first) < reminder.MaxDetails:
			e.told = true
			first = append(first, e.reminder())
		default:
			rest = append(rest, e.reminder())
		}
	}
	slices.Reverse(first)
	return append(first, rest...)
}

// reminder is an edit as a reminder names it.
func (e *edit) reminder() reminder.File {
	f := e.file(block{})
	return reminder.File{Path: f.Path, MTimeMs: f.MTimeMs, Change: reminder.Change(f.Reason)}
}

// rows are the rows of files.
func rows(edits []edit) []Difference {
	var list []Difference
	for _, e := range edits {
		row := Difference{Told: e.told}
		if e.before != nil {
			row.Path, row.From = e.before.Path, e.before.SHA256
		}
		if e.now != nil {
			row.Path, row.To = e.now.Path, e.now.SHA256
		}
		switch e.reason {
		case ReasonNew:
			row.What = WhatAdded
		case ReasonUpdated:
			row.What = WhatUpdated
		case ReasonRemoved:
			row.What = WhatRemoved
		default:
			continue
		}
		list = append(list, row)
	}
	return list
}
