package history

import (
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
)

// Record is what the manifest of the prompt in front of a window says about it. turn are the entries of the current
// turn, which are sent too, and summarized is how many entries the summary stands for. The hash is the hash of
// the hashes of the summary, as a JSON string, and of each entry's canonical JSON, one a line.
func (w *Window) Record(turn []Entry, summarized int) manifest.History {
	h := manifest.History{Entries: len(w.Entries) + len(turn), Summarized: summarized}
	var all strings.Builder
	add := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			raw = []byte(err.Error()) // arguments that are no JSON
		}
		all.WriteString(manifest.HashRaw(raw, nil) + "\n")
	}
	add(w.Summary)
	for _, list := range [][]Entry{w.Entries, turn} {
		for i := range list {
			add(&list[i])
		}
	}
	h.Hash = manifest.Hash(all.String(), nil)
	repaired := map[int]bool{}
	for i := range w.Dropped {
		switch d := &w.Dropped[i]; {
		case d.CallID != "":
			repaired[d.Index] = true
		case d.Reason == reasonBudget || d.Reason == reasonEntries:
			h.Cut++
		default:
			repaired[d.Index] = true
		}
	}
	h.Repaired = len(repaired)
	return h
}
