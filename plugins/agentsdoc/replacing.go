package agentsdoc

import (
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

// Codex's own words, in codex-rs/core/src/context/world_state/agents_md.rs (codex 0.171.0).
const (
	replacementNotice = "These AGENTS.md instructions replace all previously provided AGENTS.md instructions."
	removalNotice     = "The previously provided AGENTS.md instructions no longer apply."
)

// replacing returns a block that says, as codex does, that its text replaces the one before it in the session's epoch.
// It returns the block itself if there is nothing to say, or no space for it.
func (b *block) replacing(before *block, o *chain.Options, budget phases.AnswerBudget) *block {
	if o.Layout != chain.LayoutJoined || before == nil || before.text() == "" || before.text() == b.text() {
		return b
	}
	again := *b
	own, ok := b.contribution.(*phases.PromptSection)
	notice := replacementNotice + "\n\n"
	var section *phases.PromptSection
	if ok {
		section, ok = phases.CloneContribution(own).(*phases.PromptSection)
	}
	if !ok {
		frame := phases.Frame{Open: "# AGENTS.md instructions\n\n<INSTRUCTIONS>", Close: "</INSTRUCTIONS>"}
		section = &phases.PromptSection{
			SectionID: sectionID, Title: sectionTitle, Stability: phases.StabilityDynamic, Placement: placement(o.Placement),
			Content: frame.Open + "\n" + frame.Close,
		}
		notice = removalNotice + "\n"
	}
	section.Content = strings.Replace(section.Content, "<INSTRUCTIONS>\n", "<INSTRUCTIONS>\n"+notice, 1)
	again.contribution, again.chars = section, b.chars+utf8.RuneCountInString(notice)
	if !ok {
		again.chars = utf8.RuneCountInString(section.Content)
	}
	if !again.fits(budget) {
		return b
	}
	return &again
}

// text is the instruction text of a block, without what was said about an earlier one.
func (b *block) text() string {
	section, ok := b.contribution.(*phases.PromptSection)
	if !ok || strings.Contains(section.Content, "<INSTRUCTIONS>\n"+removalNotice) {
		return ""
	}
	return strings.Replace(section.Content, replacementNotice+"\n\n", "", 1)
}
