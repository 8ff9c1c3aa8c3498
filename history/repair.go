package history

import "slices"

// Reason says why something was left out.
type Reason string

// The reasons.
const (
	// ReasonBudget: there was no room.
	ReasonBudget Reason = "budget"
	// ReasonEntries: there were more entries than allowed.
	ReasonEntries Reason = "entries"
	// ReasonRole: no such role.
	ReasonRole Reason = "role"
	// ReasonBlank: nothing in it, or nothing left of it.
	ReasonBlank Reason = "blank"
	// ReasonUnanswered: a call without a result, or of an entry that cannot call.
	ReasonUnanswered Reason = "unanswered"
	// ReasonOrphan: a result without a call before it.
	ReasonOrphan Reason = "orphan"
)

// Dropped is one entry, call or result that is not in a window.
type Dropped struct {
	// Index is the entry's place in the input.
	Index   int    `json:"index"`
	EntryID string `json:"entry_id,omitempty"`
	TurnID  string `json:"turn_id,omitempty"`
	// CallID is that of the call or result which alone was left out of the entry,
	// with ReasonUnanswered and ReasonOrphan; other reasons are about the whole.
	CallID string `json:"call_id,omitempty"`
	Reason Reason `json:"reason"`
	// Tokens is what the entry would have taken; 0 for what cannot be sent.
	Tokens int `json:"tokens,omitempty"`
}

// Repair leaves out what no provider takes: entries of unknown roles, calls
// without a result, results without a call before them, and what is blank then.
// A result belongs to the nearest call of its id before it that has none yet.
//
// The input is not changed. Entries that are whole share its memory. Repair of
// what Repair returned changes nothing.
func Repair(entries []Entry) ([]Entry, []Dropped) {
	kept := repair(entries)
	out := make([]Entry, len(kept.entries))
	for i := range kept.entries {
		out[i] = kept.entries[i].Entry
	}
	return out, kept.dropped
}

// placed is an entry with its place in the input.
type placed struct {
	Entry

	index int
	// tie is the first entry (of those that are kept) which this one cannot be
	// without: that of a call which it answers, or its own.
	tie int
}

// repaired is what is left of a list of entries.
type repaired struct {
	entries []placed
	dropped []Dropped
}

// callAt is where a call stands.
type callAt struct{ entry, call int }

func repair(entries []Entry) repaired {
	answeredBy := pair(entries)
	answers := make(map[callAt]callAt, len(answeredBy)) // from result to call
	for call, result := range answeredBy {
		answers[result] = call
	}
	var out repaired
	place := make([]int, len(entries)) // where an entry of the input went
	for i := range entries {
		e := &entries[i]
		if !e.Role.Known() {
			out.drop(i, e, "", ReasonRole)
			continue
		}
		p := placed{Entry: *e, index: i, tie: len(out.entries)}
		p.Calls = out.filterCalls(i, e, answeredBy)
		p.Results = out.filterResults(i, e, answers)
		if len(p.Calls) != len(e.Calls) {
			p.Native = nil // it still has the calls
		}
		if p.blank() {
			out.drop(i, e, "", ReasonBlank)
			continue
		}
		for j := range e.Results {
			if call, ok := answers[callAt{i, j}]; ok {
				p.tie = min(p.tie, place[call.entry])
			}
		}
		place[i] = len(out.entries)
		out.entries = append(out.entries, p)
	}
	return out
}

// pair finds the result of each call.
func pair(entries []Entry) map[callAt]callAt {
	open := map[string]callAt{}
	pairs := map[callAt]callAt{}
	for i := range entries {
		e := &entries[i]
		switch e.Role {
		case RoleAssistant:
			for j, c := range e.Calls {
				if c.ID != "" {
					open[c.ID] = callAt{i, j}
				}
			}
		case RoleUser, RoleTool:
			for j, r := range e.Results {
				if call, ok := open[r.CallID]; ok {
					pairs[call] = callAt{i, j}
					delete(open, r.CallID)
				}
			}
		}
	}
	return pairs
}

// filterCalls returns the calls of entry i that have a result, as they are if
// all have.
func (r *repaired) filterCalls(i int, e *Entry, answered map[callAt]callAt) []Call {
	var out []Call
	for j, c := range e.Calls {
		if _, ok := answered[callAt{i, j}]; ok {
			out = append(out, c)
			continue
		}
		r.drop(i, e, c.ID, ReasonUnanswered)
	}
	if len(out) == len(e.Calls) {
		return e.Calls
	}
	return slices.Clip(out)
}

// filterResults does the same for results that have a call.
func (r *repaired) filterResults(i int, e *Entry, answers map[callAt]callAt) []Result {
	var out []Result
	for j, res := range e.Results {
		if _, ok := answers[callAt{i, j}]; ok {
			out = append(out, res)
			continue
		}
		r.drop(i, e, res.CallID, ReasonOrphan)
	}
	if len(out) == len(e.Results) {
		return e.Results
	}
	return slices.Clip(out)
}

func (r *repaired) drop(i int, e *Entry, call string, why Reason) {
	r.dropped = append(r.dropped, Dropped{Index: i, EntryID: e.ID, TurnID: e.TurnID, CallID: call, Reason: why})
}
