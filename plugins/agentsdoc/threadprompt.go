package agentsdoc

import (
	"context"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/sdk"
)

// What the contribution of a document is called, and the area it speaks for, which
// the operator grants.
const (
	threadContribution = "prompt.agents_doc"
	threadDomain       = "thread_agents_doc"
)

// behindFiles is the priority of a document beside files: with the same priority
// of both hooks, which they have unless the operator says otherwise, it makes the
// document the later fragment of their section, whatever their order in the plan.
// The later one is cut first.
const behindFiles = -1

// threadPrompt is the handler of the hook "thread_prompt". It asks anew in each
// turn, also within a session.
func (d *docs) threadPrompt(ctx context.Context, call *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
	where := &call.Context
	if isSubtask(where) && d.settings.Subtasks != settings.SubtasksInherit {
		return nil, nil // a document is people's, not the operator's
	}
	query, err := thread.QueryOf(where)
	if err != nil {
		return nil, err
	}
	answer, err := thread.Ask(ctx, call.Host, query)
	if err != nil {
		return nil, err
	}
	return d.threadReply(&answer, call.Room), nil
}

// threadReply is the section for a document; a noop with diagnostics where only
// those are left; nothing if there is nothing to say.
func (d *docs) threadReply(answer *thread.Answer, room phases.Room) []phases.Contribution {
	common := phases.Common{ContributionID: threadContribution, Domain: threadDomain, Diagnostics: answer.Diagnostics}
	if d.settings.Source == settings.SourceBoth {
		common.Priority = behindFiles
	}
	var r thread.Rendering
	if answer.Document != nil {
		r = thread.Render(answer.Document, room.MaxChars)
		common.Diagnostics = slices.Concat(common.Diagnostics, r.Diagnostics)
	}
	switch {
	case r.Content != "":
		return []phases.Contribution{&phases.PromptSection{
			Common: common, SectionID: sectionID, Title: sectionTitle, Stability: phases.StabilityDynamic, Placement: placement(d.options.Placement),
			Content: r.Content, Frame: thread.Frame(), SourceRefs: []phases.SourceRef{answer.Document.Ref()}, Cut: r.Cut,
		}}
	case len(common.Diagnostics) > 0:
		return []phases.Contribution{&phases.Noop{Common: common}}
	default:
		return nil
	}
}
