package memory

import (
	"fmt"
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/toolset"
	"github.com/grapnelhq/grapnel/phases"
)

// BenchmarkTurn is what a turn costs before its prompt: policy, recall, tools, section,
// with a thousand memories.
func BenchmarkTurn(b *testing.B) {
	dsn := file(b)
	s, err := itemstore.Open(b.Context(), dsn, itemstore.Options{Now: clock})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		batch := itemstore.Batch{WorkspaceID: "w"}
		for n := range 50 {
			batch.Items = append(batch.Items, itemstore.New{
				Scope: itemstore.ScopeUser, ScopeID: "ada", Category: "fact", Source: itemstore.SourceTurn,
				Text: fmt.Sprintf("Server number %d in house %d is called kiwi%d", n, i, i*n),
			})
		}
		if _, err := s.Remember(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	p := configured(b, dsn, nil, nil)
	const text = "What is the server kiwi12 in house 3 called, and which number has it?"
	hooks := []struct {
		name string
		in   phases.Input
	}{
		{"policy", &phases.PrePolicyInput{UserText: phases.T(text)}},
		{"recall", &phases.PrePromptContextInput{UserText: phases.T(text)}},
		{"tools", &phases.PreToolsInput{ToolCalling: true}},
		{"prompt", &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: toolset.Names()}},
	}
	x := begin(b, p, ada("1")).says(text)
	for _, h := range hooks {
		b.Run(h.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := p.Dispatch(b.Context(), &phases.Dispatch{
					Subscription: "memory." + h.name, Hook: h.name, Context: x.context, Input: h.in, Policies: x.policies, Contexts: x.contexts,
				})
				if err != nil || len(res.Contributions) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
