package section_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/plugins/memory/section"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

func BenchmarkWrite(b *testing.B) {
	in := section.Input{Prompt: turnpolicy.PromptFull, Room: 20_000}
	for range 5 {
		in.Items = append(in.Items, section.Item{Scope: "user", Category: "fact", Text: strings.Repeat("I prefer <tabs> ", 17)})
	}
	b.ReportAllocs()
	for b.Loop() {
		section.Write(in)
	}
}
