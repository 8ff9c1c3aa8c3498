package history_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/history"
)

func ExampleSelect() {
	in := history.Input{
		Summary: "The user asked for a test of package plan.",
		Entries: []history.Entry{
			{ID: "1", TurnID: "a", Role: history.RoleUser, Text: "Run it."},
			{ID: "2", TurnID: "a", Role: history.RoleAssistant, Text: strings.Repeat("It printed a lot. ", 20)},
			{ID: "3", TurnID: "b", Role: history.RoleUser, Text: "Read order.go."},
			{ID: "4", TurnID: "b", Role: history.RoleAssistant, Calls: []history.Call{
				{ID: "c1", Tool: "read", Arguments: json.RawMessage(`{"path":"order.go"}`)},
			}},
			{ID: "5", TurnID: "b", Role: history.RoleTool, Results: []history.Result{{CallID: "c1", Text: "package plan"}}},
		},
		Fixed: []string{"You are a careful engineer."},
	}
	counter, err := history.NewCounter(history.CounterOptions{})
	if err != nil {
		panic(err)
	}
	w, err := history.Select(in, history.Settings{ContextTokens: 200, ReserveTokens: 100}, counter.Count)
	if err != nil {
		panic(err)
	}
	for _, e := range w.Entries {
		fmt.Println("kept", e.ID, e.Role)
	}
	for _, d := range w.Dropped {
		fmt.Println("dropped", d.EntryID, d.Reason)
	}
	fmt.Println("compaction:", w.Compaction)
	// Output:
	// kept 3 user
	// kept 4 assistant
	// kept 5 tool
	// dropped 1 budget
	// dropped 2 budget
	// compaction: now
}
