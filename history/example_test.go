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

func ExampleNewCounter() {
	counter, err := history.NewCounter(history.CounterOptions{Encoding: history.EncodingFor("gpt-5.6-sol")})
	if err != nil {
		panic(err)
	}
	// Count fits the compiler's CountTokens, and Encoding its Tokenizer.
	fmt.Println(counter.Encoding(), counter.Count("Nothing fails silently."))
	// Output: o200k_base 4
}

func ExampleRepair() {
	entries, dropped := history.Repair([]history.Entry{
		{ID: "1", Role: history.RoleUser, Text: "Delete it."},
		{ID: "2", Role: history.RoleAssistant, Text: "Deleting.", Calls: []history.Call{{ID: "c1", Tool: "rm"}}},
		{ID: "3", Role: history.RoleUser, Text: "Stop!"},
	})
	fmt.Println(len(entries), "entries,", len(entries[1].Calls), "calls")
	fmt.Println(dropped[0].CallID, dropped[0].Reason)
	// Output:
	// 3 entries, 0 calls
	// c1 unanswered
}
