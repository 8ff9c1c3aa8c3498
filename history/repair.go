package history

import "slices"

// Reason says why something was omitted: budget (it did not fit), entries (there were more than allowed), role (it is
// unknown), blank (it is empty, maybe after repair), unanswered (a call without a result, or of an entry that cannot
// call) or orphan (a result without a call before it).
type Reason string

// The reasons.
const (
	reasonBudget     Reason = "budget"
	reasonEntries    Reason = "entries"
	reasonRole       Reason = "role"
	reasonBlank      Reason = "blank"
	reasonUnanswered Reason = "unanswered"
	reasonOrphan     Reason = "orphan"
)

// Dropped is one entry, call or result that is not in a window.
type Dropped struct {
	Index   int    `json:"index"` // the entry's place in the input
	EntryID string `json:"entry_id,omitempty"`
	TurnID  string `json:"turn_id,omitempty"`
	// CallID is set if only this call or result was omitted from the entry (unanswered, orphan).
	CallID string `json:"call_id,omitempty"`
	Reason Reason `json:"reason"`
	// Tokens is what the entry would have taken; 0 for what cannot be sent.
	Tokens int `json:"tokens,omitempty"`
}

// Repair omits what no provider takes: entries of unknown roles, calls without a result,
// results without a call before them, and entries that are then blank. A result belongs to
// the nearest call of its id before it that has none yet.
//
// The input is not changed; unchanged entries share its memory. Repair is idempotent.
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
	tie   int // the first kept entry that this one depends on: that of a call which it answers, or its own
}

type repaired struct {
	entries []placed
	dropped []Dropped
}

// callAt is the place of a call or result.
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
			out.drop(i, e, "", reasonRole)
			continue
		}
		p := placed{Entry: *e, index: i, tie: len(out.entries)}
		p.Calls = filtered(&out, e.Calls, i, e, answeredBy, func(c Call) string { return c.ID }, reasonUnanswered)
		p.Results = filtered(&out, e.Results, i, e, answers, func(r Result) string { return r.CallID }, reasonOrphan)
		if len(p.Calls) != len(e.Calls) {
			p.Native = nil // it still has the calls
		}
		if e.Role == RoleAssistant {
			p.Media = nil // models write none
		}
		if p.Text == "" && len(p.Calls) == 0 && len(p.Results) == 0 && len(p.Media) == 0 && p.Native == nil {
			out.drop(i, e, "", reasonBlank)
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

// filtered returns the calls that have a result, or the results that have a call, and drops the others.
func filtered[T any](r *repaired, list []T, i int, e *Entry, pairs map[callAt]callAt, id func(T) string, why Reason) []T {
	var out []T
	for j, v := range list {
		if _, ok := pairs[callAt{i, j}]; ok {
			out = append(out, v)
		} else {
			r.drop(i, e, id(v), why)
		}
	}
	if len(out) == len(list) {
		return list
	}
	return slices.Clip(out)
}

func (r *repaired) drop(i int, e *Entry, call string, why Reason) {
	r.dropped = append(r.dropped, Dropped{Index: i, EntryID: e.ID, TurnID: e.TurnID, CallID: call, Reason: why})
}
