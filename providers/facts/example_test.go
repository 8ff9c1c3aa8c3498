package facts_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/providers/facts"
)

func ExampleTable_Lookup() {
	table, err := facts.Load()
	if err != nil {
		panic(err)
	}
	found, _ := table.Lookup(facts.Anthropic, "claude-haiku-4-5")
	fmt.Println(found.MinimumTokens, found.Breakpoints, found.Lifetimes)
	// Output: 4096 4 [1h 5m]
}
