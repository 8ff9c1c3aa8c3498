package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/section"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/sdk"
)

// The section's names.
const (
	sectionID    = "memory_recall"
	sectionTitle = "Memory Recall"
)

// prompt is the handler of the hook "prompt". It opens no database: what it shows is
// what the recalls of this turn have handed on.
func (m *memory) prompt(_ context.Context, call *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	p, ok := turnPolicy(call.Policies)
	if ok && slices.Contains(call.Withheld, "tool_calling") {
		return remarks([]phases.Diagnostic{remark("tool_calling_withheld", phases.SeverityWarning,
			"whether the model can call tools is withheld (grants.see: tool_calling), so nothing is shown")}), nil
	}
	sees := visible(call, in)
	if !ok || p.Prompt == turnpolicy.PromptForgetOnly && !sees(toolset.Forget) || !slices.ContainsFunc(toolset.Names(), sees) {
		return nil, nil
	}
	input := section.Input{
		Prompt: p.Prompt, Room: call.Room.MaxChars, CanSearch: sees(toolset.Search),
		AskedToRemember: p.ExplicitRemember && p.RememberTool.Allowed() && sees(toolset.Remember),
	}
	notes := gather(call, p, &input)
	text := section.Write(input)
	if text.Body == "" {
		if len(input.Items) > 0 && p.Prompt != turnpolicy.PromptDisabled {
			notes = append(notes, remark("no_room", phases.SeverityWarning,
				fmt.Sprintf("%d memories, and no room for one of them in %d characters", len(input.Items), input.Room)))
		}
		return remarks(notes), nil
	}
	return sdk.Reply(sectionOf(text, notes))
}

// gather takes up what was recalled, as far as the policy allows it to be shown: the
// recall's first.
func gather(call *sdk.Call, p turnpolicy.Policy, into *section.Input) []phases.Diagnostic {
	var notes []phases.Diagnostic
	if p.Prompt != turnpolicy.PromptFull && p.Prompt != turnpolicy.PromptReadOnly {
		return nil
	}
	for _, id := range []string{recallID, activeRecallID} {
		parcel, more := received(call, id)
		notes = append(notes, more...)
		for _, i := range parcel.Items {
			into.Items = append(into.Items, section.Item{ID: i.ID, Scope: i.Scope, Category: i.Category, Text: i.Text, Hook: hookOf(call, id)})
		}
		into.Left += parcel.Left
	}
	return notes
}

// hookOf is the subscription that handed something on under an id.
func hookOf(call *sdk.Call, id string) string {
	for i := range call.Contexts {
		if c := &call.Contexts[i]; c.Domain == domain && c.ContributionID == id && siblings(c.Owner, call.Subscription) {
			return c.Owner
		}
	}
	return ""
}

// visible tells which tools the model can call. Where their names are withheld, that
// tools can be called at all has to do.
func visible(call *sdk.Call, in *phases.PrePromptCompileInput) func(tool string) bool {
	withheld := slices.Contains(call.Withheld, "available_tools")
	return func(tool string) bool {
		return in.ToolCalling && (withheld || slices.Contains(in.AvailableTools, tool))
	}
}

// sectionOf is the contribution of a text. Its references name the memories and who
// recalled them, and hold nothing of what they say.
func sectionOf(text section.Text, notes []phases.Diagnostic) *phases.PromptSection {
	s := &phases.PromptSection{
		Common: phases.Common{ContributionID: sectionID, Domain: domain, Diagnostics: notes}, SectionID: sectionID, Title: sectionTitle,
		Stability: phases.StabilityDynamic, Content: text.Body,
	}
	if text.Open != "" {
		s.Frame = &phases.Frame{Open: text.Open, Close: text.Close}
	}
	if text.Kept < text.Original {
		s.Cut = &phases.SelfCut{Original: text.Original, Kept: text.Kept}
	}
	for _, i := range text.Shown {
		s.SourceRefs = append(s.SourceRefs, phases.SourceRef{Kind: "memory", ID: i.ID, Label: i.Scope + " " + i.Category + " by " + i.Hook})
	}
	return s
}
