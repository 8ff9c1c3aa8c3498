package thread_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/phases"
)

// gateway is a host with one document.
type gateway struct{}

func (gateway) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"effective": {"doc": {"id": "01J", "content": "Answer in French.\n"}, "source_path": ["Clients", "Paris"]}, "diagnostics": []}`), nil
}

func (gateway) Invalidate(context.Context, phases.Invalidation) error { return nil }

func Example() {
	answer, err := thread.Ask(context.Background(), gateway{}, &phases.Context{WorkspaceID: "w", ThreadID: "t"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Document.Label())
	fmt.Println(thread.Render(answer.Document, 16_000).Content)
	// Output:
	// Clients / Paris
	// Answer in French.
}
