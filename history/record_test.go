package history_test

import (
	"reflect"
	"testing"

	"github.com/grapnelhq/grapnel/history"
)

func TestRecord(t *testing.T) {
	t.Parallel()

	entries := []history.Entry{
		{Role: history.RoleUser, Text: "an old question, which is long and does not fit into the window any more"},
		{Role: history.RoleUser, Text: "Which files?"},
		{Role: history.RoleAssistant, Calls: []history.Call{{ID: "1", Tool: "list"}, {ID: "2", Tool: "lost"}}},
		{Role: history.RoleTool, Results: []history.Result{{CallID: "1", Text: "a b"}}},
		{Role: history.RoleAssistant, Text: "a and b"},
	}
	turn := []history.Entry{{Role: history.RoleUser, Text: "Thanks."}}
	count := func(s string) int { return len(s) }
	w, err := history.Select(history.Input{Summary: "s", Entries: entries, Turn: turn}, history.Settings{ContextTokens: 110}, count)
	if err != nil {
		t.Fatal(err)
	}
	got := w.Record(turn, 3)
	if got.Entries != len(w.Entries)+1 || got.Cut != 1 || got.Repaired != 1 || got.Summarized != 3 || got.Hash == "" {
		t.Errorf("record %+v of %+v", got, w)
	}
	if again := w.Record(turn, 3); !reflect.DeepEqual(again, got) {
		t.Errorf("again %+v", again)
	}
	w.Entries[0].Text += "!"
	if changed := w.Record(turn, 3); changed.Hash == got.Hash {
		t.Error("another entry has the same hash")
	}
}
