package agentsdoc

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

// TestReplacedTextIsAnnounced has the words and places that codex has
// (codex-rs/core/src/context/world_state/agents_md.rs).
func TestReplacedTextIsAnnounced(t *testing.T) {
	t.Parallel()
	o, err := chain.ForPreset(chain.PresetCodex, chain.Places{})
	if err != nil {
		t.Fatal(err)
	}
	of := func(text string) *block {
		b := &block{}
		if text != "" {
			content := "# AGENTS.md instructions for /r\n\n<INSTRUCTIONS>\n" + text + "\n</INSTRUCTIONS>"
			b.contribution, b.chars = &phases.PromptSection{SectionID: sectionID, Content: content}, len(content)
		}
		return b
	}
	content := func(b *block) string {
		if s, ok := b.contribution.(*phases.PromptSection); ok {
			return s.Content
		}
		return ""
	}
	const head = "# AGENTS.md instructions for /r\n\n<INSTRUCTIONS>\n"
	room := phases.AnswerBudget{MaxChars: 1000}
	first := of("one")
	second := of("two").replacing(first, &o, room)
	if want := head + replacementNotice + "\n\ntwo\n</INSTRUCTIONS>"; content(second) != want || second.chars != len(want) {
		t.Errorf("got %q of %d, want %q", content(second), second.chars, want)
	}
	if again := of("two").replacing(second, &o, room); content(again) != head+"two\n</INSTRUCTIONS>" {
		t.Errorf("the same text is announced: %q", content(again))
	}
	gone := of("").replacing(second, &o, room)
	if want := "# AGENTS.md instructions\n\n<INSTRUCTIONS>\n" + removalNotice + "\n</INSTRUCTIONS>"; content(gone) != want {
		t.Errorf("got %q, want %q", content(gone), want)
	}
	for name, b := range map[string]*block{
		"at first": of("one").replacing(nil, &o, room), "after nothing": of("one").replacing(of(""), &o, room), "after the end": of("one").replacing(gone, &o, room),
		"without space": of("two").replacing(first, &o, phases.AnswerBudget{MaxChars: 80}),
	} {
		if strings.Contains(content(b), "previously") {
			t.Errorf("%s: %q", name, content(b))
		}
	}
	o.Layout = chain.LayoutDelimited
	if b := of("two").replacing(first, &o, room); strings.Contains(content(b), "previously") {
		t.Error("another preset announces it")
	}
}
