package merge

import (
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// placedDiagnostic is a diagnostic and the reply that it belongs to.
type placedDiagnostic struct {
	reply int
	phases.Diagnostic
}

// diagnose keeps a diagnostic for finish, which puts them in plan order.
func (m *merger) diagnose(reply int, d phases.Diagnostic) {
	m.diags = append(m.diags, placedDiagnostic{reply, d})
}

// leaveOut records something of it that was not kept.
func (m *merger) leaveOut(it *item, id, reason string, chars int) {
	m.out.LeftOut = append(m.out.LeftOut, phases.LeftOut{ID: id, Owner: it.hook.Plugin, Reason: reason, Chars: chars})
}

// lose drops an item whole.
func (m *merger) lose(it *item, id, reason string, chars int) {
	it.lost = true
	m.leaveOut(it, id, reason, chars)
}

// overBudget reports what a limit of text or count left out. Unlike a conflict
// it is nobody's failure.
func (m *merger) overBudget(it *item, id string, chars int, why string) {
	m.leaveOut(it, id, ReasonBudget, chars)
	m.diagnose(it.reply, phases.Diagnostic{
		Code: phases.CodeLeftOut, Severity: phases.SeverityWarning, Slot: id, Plugin: it.hook.Plugin, Subscription: it.hook.Subscription,
		Message:    fmt.Sprintf("%q of %d characters was left out: %s", id, chars, why),
		Visibility: it.hook.Visibility,
	})
}

// conflict records that a subscription loses a slot to the other one. Further
// losses of the same slot by the same reply add nothing, so that there is one
// diagnostic for one conflict.
func (m *merger) conflict(loser *item, other, slot, what string) {
	if n := len(m.out.Losses); n > 0 && m.out.Losses[n-1].Reply == loser.reply && m.out.Losses[n-1].Slot == slot {
		return
	}
	sub := loser.hook.Subscription
	m.out.Losses = append(m.out.Losses, Loss{Reply: loser.reply, Subscription: sub, Cause: phases.CauseConflict, Slot: slot})
	m.diagnose(loser.reply, phases.Diagnostic{
		Code: string(phases.CauseConflict), Severity: phases.SeverityWarning, Plugin: loser.hook.Plugin,
		Subscription: sub, OtherSubscription: other, Slot: slot, Visibility: loser.hook.Visibility,
		Message: fmt.Sprintf("%s %q belongs to %s: what %s contributed to it was dropped", what, slot, other, sub),
	})
}

// source is the manifest's entry for a kept item.
func (m *merger) source(it *item) phases.HookSource {
	word, refs := "none", 0
	switch v := it.entry.Value.(type) {
	case *phases.PromptSection:
		word, refs = truncationWord(it.limit, selfCut(v)), len(v.SourceRefs)
	case *phases.PromptContext:
		word, refs = truncationWord(it.limit, false), len(v.SourceRefs)
	}
	return phases.HookSource{
		HookID: it.hook.Hook, SubscriptionID: it.hook.Subscription, ContributionID: it.id(), ContributionHash: it.entry.Hash,
		ContributionKind: it.entry.Value.Kind(), SectionID: it.section, Phase: m.row.Phase, Priority: it.hook.Priority,
		SourceCount: refs, Truncation: word, Plugin: it.hook.Plugin, PluginVersion: it.hook.PluginVersion,
		CachedFrom: m.replies[it.reply].CachedFrom,
	}
}

// selfCut reports whether the plugin says that it left something away itself.
func selfCut(c *phases.PromptSection) bool { return c.Cut != nil && c.Cut.Kept < c.Cut.Original }

// truncationWord says on whose side a text was cut: by the hook's own limits
// and doing, by the prompt's, or by both.
func truncationWord(limit phases.Limit, self bool) string {
	hook := self || limit == phases.LimitContribution || limit == phases.LimitSubscription
	prompt := limit == phases.LimitSection || limit == phases.LimitTotal
	switch {
	case hook && prompt:
		return "hook_and_prompt"
	case hook:
		return "hook"
	case prompt:
		return "prompt"
	}
	return "none"
}
