package lazy

import (
	"slices"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/reminder"
)

// The codes of changes, as rows for people and the manifest.
const (
	CodeAdded   chain.Code = "added"
	CodeChanged chain.Code = "changed"
	CodeRemoved chain.Code = "removed"
)

// Changes is the answer of [State.Changed].
type Changes struct {
	// Files are in chain order, and those that are gone behind them.
	Files []File `json:"files"`
	// Pending counts the changes that wait for the next call.
	Pending int `json:"pending"`
	// Reminder is Message with its tag; empty without files.
	Reminder string `json:"reminder"`
	// Diagnostics has one row for each file.
	Diagnostics []chain.Diagnostic `json:"diagnostics"`

	// Message is what tells the model.
	Message reminder.Message `json:"-"`
}

// Changed tells what has become of the files that the session began with, given
// the chain of its working folder as it is now. What it tells counts as told, and
// as delivered; what [State.Touch] delivered is not told again. A content that the
// model was given before another one is named without its text. At most as many
// files are told as an event has, the nearest first; the others wait.
//
// The working folder, root and markers are not compared: that is for
// [State.Resume]. Options that never resolve tell nothing.
func (s *State) Changed(now chain.Chain) Changes {
	out := Changes{Files: []File{}, Diagnostics: []chain.Diagnostic{}}
	o := nestedOptions(now.Options, s.Root)
	if o.Resolver.ChangedWhen == option.ChangedNeverResolved {
		return out
	}
	edits := s.edits(&now, o.Resolver.ChangedWhen)
	out.Pending = choose(edits, o.Resolver.MaxFiles)
	room := newRoom(&o)
	blocks := room.blocks(edits)
	var told []reminder.File
	for i, e := range edits {
		if !e.told {
			continue
		}
		f := e.file(blocks[i])
		out.Files = append(out.Files, f)
		out.Diagnostics = append(out.Diagnostics, e.diagnostic())
		told = append(told, reminder.File{Path: f.Path, MTimeMs: f.MTimeMs, Change: reminder.Change(f.Reason), Block: blocks[i].text})
	}
	out.Diagnostics = append(out.Diagnostics, room.diagnostics...)
	s.adopt(edits, true)
	out.Message = reminder.StyleOf(o.Layout).FilesChanged(told)
	out.Reminder = out.Message.Tagged()
	return out
}

// choose marks what is told: the nearest files, of which those that are gone
// count as the nearest. It returns how many are not.
func choose(edits []edit, most int) (rest int) {
	for i := range slices.Backward(edits) {
		switch e := &edits[i]; {
		case e.reason == "":
		case most > 0:
			most--
			e.told = true
		default:
			rest++
		}
	}
	return rest
}

// blocks are the texts of what is told, by index: what is nearest gets its room
// first, and what was seen needs none.
func (r *room) blocks(edits []edit) []block {
	blocks := make([]block, len(edits))
	for i, e := range slices.Backward(edits) {
		if e.told && !e.seen && e.source != nil && e.source.Text != "" {
			blocks[i] = r.block(*e.source)
		}
	}
	return blocks
}

// file is an edit as it is told.
func (e *edit) file(b block) File {
	f := File{Reason: e.reason, Delivery: option.DeliverReminder, Body: b.body}
	if b.text != "" {
		f.Delivery = option.DeliverBody
	}
	if e.now == nil {
		f.Path = e.before.Path
		return f
	}
	f.Path, f.Display, f.MTimeMs, f.SizeBytes = e.now.Path, e.source.Display, e.now.MTimeMs, e.now.Size
	return f
}

// diagnostic is the row of an edit.
func (e *edit) diagnostic() chain.Diagnostic {
	switch e.reason {
	case ReasonNew:
		return chain.Diagnostic{Code: CodeAdded, Severity: chain.SeverityInfo, Path: e.now.Path, Detail: "is new among the files of the working folder"}
	case ReasonRemoved:
		return chain.Diagnostic{Code: CodeRemoved, Severity: chain.SeverityInfo, Path: e.before.Path, Detail: "is no longer among the files of the working folder"}
	default:
		return chain.Diagnostic{Code: CodeChanged, Severity: chain.SeverityInfo, Path: e.now.Path, Detail: "is not as the session was told"}
	}
}
