package compiler

import (
	"slices"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
)

// TestObserve: the record of an agent's request has the system prompt byte for byte, each text once, and counts tokens only of
// what is new.
func TestObserve(t *testing.T) {
	t.Parallel()

	r := &Request{
		Agent: "claude-code",
		System: []RequestPart{
			{ID: "system", Owner: "claude-code", Stability: stable, Text: "Be an agent.\n\n"},
			{ID: "system", Owner: "mod:x", Stability: stable, Text: "Be tidy."},
			{ID: "late", Owner: "claude-code", Stability: dynamic, Text: "\nIt is 10 o'clock.\x00"},
		},
		Tools:    []RequestPart{{ID: "ls", Owner: "mcp:files", Text: `{"name":"ls"}`}, {ID: "cat", Owner: "claude-code", Text: `{"name":"cat"}`}},
		Messages: []RequestPart{{Kind: "text", Role: "user", Owner: "user", Text: "Be tidy."}},
		History:  manifest.History{Entries: 1, Cached: 1}, Cached: []int{1},
	}
	counted := 0
	in := &Input{Provider: Anthropic, Model: "m", KeepTexts: true, CountTokens: func(text string) int { counted++; return len(text) }}
	out := Observe(r, in)
	m := out.Manifest()
	m.Observed = r.Agent
	if want := []string{"system", "system-2", "late"}; !slices.Equal(m.SectionIDs, want) {
		t.Errorf("sections %v, want %v", m.SectionIDs, want)
	}
	texts := map[string]string{}
	for _, text := range out.Texts {
		texts[text.Hash] = text.Text
	}
	if len(out.Texts) != 5 || len(texts) != 5 {
		t.Errorf("%d texts are kept, %d of them different, want 5", len(out.Texts), len(texts))
	}
	p, err := Rebuild(&m, func(hash string) (string, error) { return texts[hash], nil })
	if want := "Be an agent.\n\nBe tidy.\nIt is 10 o'clock.\ufffd"; err != nil || p.FullText != want || m.HashFull != manifest.Hash(want, nil) || m.HashStable != manifest.Hash(p.StableText, nil) || p.Boundary != "" {
		t.Errorf("the system prompt is %q, %v", p.FullText, err)
	}
	if b := m.Cache.Plan.Breakpoints; len(b) != 1 || b[0] != (manifest.Breakpoint{After: manifest.AfterStable, SectionID: "system-2"}) {
		t.Errorf("breakpoints %+v", b)
	}
	if counted != 5 || m.Cache.ToolTokens != 27 {
		t.Errorf("%d texts were counted, %d tokens of tools", counted, m.Cache.ToolTokens)
	}

	in.Previous, counted = PreviousOf(new(m.Outline()), time.Now(), ""), 0
	r.System[2].Text = "\nIt is 11 o'clock."
	if again := Observe(r, in); counted != 1 || again.Cache.ToolTokens != 27 || *again.Sections[0].Tokens != 14 {
		t.Errorf("%d texts were counted again, want 1", counted)
	}
	r.Tools[1].Text = `{"name":"cat","description":"reads"}`
	if Observe(r, in); counted != 1+1+2 {
		t.Errorf("%d texts were counted, want 4", counted)
	}
}
