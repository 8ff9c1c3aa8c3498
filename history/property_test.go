package history

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkWindow selects, checks all that is promised, and returns how many
// entries were kept.
func checkWindow(t *testing.T, in Input, set Settings) int {
	t.Helper()
	w, err := Select(in, set, words)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Select(in, set, words)
	if diff := cmp.Diff(again, w); diff != "" {
		t.Fatalf("not deterministic:\n%s", diff)
	}
	checkBudget(t, in, set, w)
	checkSendable(t, w.Entries)
	checkWhole(t, in, w)

	// With room for everything, the end of what is sent is what was sent.
	set.ContextTokens, set.MaxEntries = 1<<30, 1<<30
	all, err := Select(in, set, words)
	if err != nil {
		t.Fatal(err)
	}
	tail := all.Entries[len(all.Entries)-len(w.Entries):]
	if diff := cmp.Diff(w.Entries, slices.Clone(tail)); diff != "" && len(tail) > 0 {
		t.Fatalf("not the newest entries:\n%s", diff)
	}
	return len(w.Entries)
}

func checkBudget(t *testing.T, in Input, set Settings, w Window) {
	t.Helper()
	set = set.withDefaults()
	m := meter{count: words, overhead: set.EntryOverhead}
	used := m.text(in.Summary)
	for i := range w.Entries {
		used += m.entry(&w.Entries[i])
	}
	switch {
	case w.Summary != in.Summary:
		t.Fatal("the summary is not there")
	case used != w.Used:
		t.Fatalf("used %d, said %d", used, w.Used)
	case used > w.Budget && len(w.Entries) > 0:
		t.Fatalf("used %d of %d", used, w.Budget)
	case len(w.Entries) > set.MaxEntries:
		t.Fatalf("%d entries, allowed %d", len(w.Entries), set.MaxEntries)
	case w.Used > w.Total || w.Budget+w.Fixed+set.ReserveTokens != set.ContextTokens:
		t.Fatalf("sums do not agree: %+v", w)
	}
}

// checkSendable wants a call before each result and a result for each call.
func checkSendable(t *testing.T, entries []Entry) {
	t.Helper()
	open := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if !e.Role.Known() || e.Text == "" && len(e.Calls) == 0 && len(e.Results) == 0 && e.Native == nil {
			t.Fatalf("entry %s cannot be sent: %+v", e.ID, e)
		}
		for _, r := range e.Results {
			if !open[r.CallID] || e.Role == RoleAssistant {
				t.Fatalf("result of %s in entry %s has no call", r.CallID, e.ID)
			}
			delete(open, r.CallID)
		}
		for _, c := range e.Calls {
			if open[c.ID] || e.Role != RoleAssistant {
				t.Fatalf("call %s in entry %s is not answered", c.ID, e.ID)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls without result: %v", open)
	}
	if again, dropped := Repair(entries); len(dropped) > 0 || !cmp.Equal(again, entries) {
		t.Fatalf("Repair is not idempotent: %v", dropped)
	}
}

// checkWhole wants each entry of the input either kept or named, and no turn
// divided by a limit.
func checkWhole(t *testing.T, in Input, w Window) {
	t.Helper()
	keptTurns, keptIDs := map[string]bool{}, map[string]bool{}
	for _, e := range w.Entries {
		keptIDs[e.ID] = true
		if e.TurnID != "" {
			keptTurns[e.TurnID] = true
		}
	}
	named := map[string]bool{}
	for _, d := range w.Dropped {
		if d.Reason == reasonUnanswered || d.Reason == reasonOrphan {
			continue
		}
		named[d.EntryID] = true
		if (d.Reason == reasonBudget || d.Reason == reasonEntries) && keptTurns[d.TurnID] {
			t.Fatalf("turn %s was divided", d.TurnID)
		}
		if in.Entries[d.Index].ID != d.EntryID {
			t.Fatalf("index %d is not entry %s", d.Index, d.EntryID)
		}
	}
	for _, e := range in.Entries {
		if keptIDs[e.ID] == named[e.ID] {
			t.Fatalf("entry %s: kept %v, named %v", e.ID, keptIDs[e.ID], named[e.ID])
		}
	}
}

// FuzzSelect makes threads of a few letters: a role, a turn, an id, a length.
func FuzzSelect(f *testing.F) {
	f.Add("u10a a11b t11c u20d", 12, 0)
	f.Add("x99", 1, 3)
	f.Fuzz(func(t *testing.T, script string, context, most int) {
		roles := map[byte]Role{'u': RoleUser, 'a': RoleAssistant, 't': RoleTool}
		var in Input
		for i, word := range strings.Fields(script) {
			word += "0000"
			role, ok := roles[word[0]]
			if !ok {
				role = Role(word)
			}
			e := Entry{ID: strconv.Itoa(i), Role: role, TurnID: strings.Trim(word[1:2], "0"), Text: strings.Repeat("w ", int(word[3])%7)}
			e.Calls = []Call{{ID: strings.Trim(word[2:3], "0")}}[:int(word[0])%2]
			e.Results = []Result{{CallID: strings.Trim(word[2:3], "0")}}[:1-int(word[0])%2]
			in.Entries = append(in.Entries, e)
		}
		set := Settings{ContextTokens: 1 + context&0xffff, MaxEntries: most & 0xff}
		checkWindow(t, in, set)
	})
}
