package providers_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

func ExampleLay() {
	l, err := providers.Lay(providers.Request{
		Prompt: compiler.Prompt{FullText: "## Identity\n\nYou are a test."},
		Tools:  []phases.Tool{{Name: "memory.search", InputSchema: json.RawMessage(`{"type": "object"}`)}, {Name: "list"}},
		Turn:   []history.Entry{{Role: history.RoleUser, Text: "Hello."}},
	}, providers.Rules{})
	if err != nil {
		panic(err)
	}
	for _, t := range l.Tools {
		fmt.Println(t.Name, string(t.Schema))
	}
	for _, w := range l.Warnings {
		fmt.Println(w.Code)
	}
	called, _ := l.Names.Tool("memory_search")
	fmt.Println(called)
	// Output:
	// list {"properties":{},"type":"object"}
	// memory_search {"properties":{},"type":"object"}
	// tool_renamed
	// memory.search
}
