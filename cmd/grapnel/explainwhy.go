package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// idContexts is the section that contexts of all hooks are rendered into.
const idContexts = "dynamic_context"

// explain gathers all that the record says about an id; nil if that is nothing.
func (r *record) explain(id string) *explanation {
	e := &explanation{ID: id, ManifestID: r.ManifestID, Plugins: []phases.PluginRow{}}
	switch {
	case r.isSection(id):
		r.explainSection(e)
	case r.isSubscription(id):
		r.explainSubscription(e)
	default:
		return nil
	}
	return e
}

// isSection reports whether an id is that of a section: in the prompt, left out,
// or one that some plugin or a file of the runtime home may write. Ids of
// contributions, which are left out too, have a "#" in them.
func (r *record) isSection(id string) bool {
	_, claimed := r.claims[id]
	return claimed || r.fileOf(id) != nil || slices.Contains(r.SectionIDs, id) ||
		slices.ContainsFunc(r.LeftOut, func(l phases.LeftOut) bool { return l.ID == id && !strings.Contains(id, "#") })
}

// isSubscription reports whether the ledger has the id, or it is one of a plugin
// that never described itself.
func (r *record) isSubscription(id string) bool {
	plugin := pluginOf(id)
	return slices.ContainsFunc(r.Runs, func(run phases.Run) bool { return run.Subscription == id }) || plugin != id &&
		slices.ContainsFunc(r.Plugins, func(p phases.PluginRow) bool { return p.Plugin == plugin && p.State != phases.PluginReady })
}

// explainSection gathers what concerns a section. Where it is missing, the runs
// of all hooks that could have brought it are evidence too.
func (r *record) explainSection(e *explanation) {
	e.Kind = explainsSection
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return s.SectionID == e.ID })
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool {
		return h.SectionID == e.ID || e.ID == idContexts && h.ContributionKind == phases.KindPromptContext
	})
	e.LeftOut = filtered(r.LeftOut, func(l *phases.LeftOut) bool { return l.ID == e.ID })
	e.In = len(e.Sections) > 0
	owners := slices.Clone(r.claims[e.ID])
	for _, l := range e.LeftOut {
		owners = append(owners, l.Owner)
	}
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool {
		if slices.ContainsFunc(e.HookSources, func(h phases.HookSource) bool { return h.SubscriptionID == run.Subscription }) {
			return true
		}
		return !e.In && run.Phase == phases.PrePromptCompile && slices.Contains(owners, run.Plugin)
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool {
		return d.SectionID == e.ID || d.HookSource != "" && e.ran(d.HookSource)
	})
	for i := range e.Sections {
		owners = append(owners, e.Sections[i].Owner)
	}
	r.addPlugins(e, owners)
	e.Why = r.whySection(e)
}

// explainSubscription gathers what concerns a subscription. What was left out is
// recorded by owner, not by subscription; so when nothing of it was kept, all
// that its plugin lost is shown.
func (r *record) explainSubscription(e *explanation) {
	e.Kind = explainsSubscription
	e.HookSources = filtered(r.HookSources, func(h *phases.HookSource) bool { return h.SubscriptionID == e.ID })
	gave := func(section string) bool {
		return section != "" && slices.ContainsFunc(e.HookSources, func(h phases.HookSource) bool { return h.SectionID == section })
	}
	e.Sections = filtered(r.Sections, func(s *manifest.Section) bool { return gave(s.SectionID) })
	e.Runs = filtered(r.Runs, func(run *phases.Run) bool { return run.Subscription == e.ID })
	e.LeftOut = filtered(r.LeftOut, func(l *phases.LeftOut) bool {
		return strings.HasPrefix(l.ID, e.ID+"#") || gave(l.ID) || len(e.HookSources) == 0 && len(e.Runs) > 0 && l.Owner == pluginOf(e.ID)
	})
	e.Diagnostics = filtered(r.Diagnostics, func(d *manifest.Diagnostic) bool { return d.HookSource == e.ID })
	e.In = len(e.HookSources) > 0
	r.addPlugins(e, []string{pluginOf(e.ID)})
	e.Why = whySubscription(e)
}

// ran reports whether a subscription is among the runs of the explanation.
func (e *explanation) ran(id string) bool {
	return slices.ContainsFunc(e.Runs, func(run phases.Run) bool { return run.Subscription == id })
}

// addPlugins adds the rows of the named plugins and of those that ran.
func (r *record) addPlugins(e *explanation, names []string) {
	for i := range e.Runs {
		names = append(names, e.Runs[i].Plugin)
	}
	e.Plugins = filtered(r.Plugins, func(p *phases.PluginRow) bool { return slices.Contains(names, p.Plugin) })
}

// filtered are the rows that are wanted; never nil, so that JSON has a list.
func filtered[T any](list []T, want func(*T) bool) []T {
	out := []T{}
	for i := range list {
		if want(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// whySection is the answer in a sentence: where the section is, or the first
// reason found for its absence.
func (r *record) whySection(e *explanation) string {
	if len(e.Sections) > 0 {
		s := &e.Sections[0]
		why := fmt.Sprintf("it is section %d of %d, %s characters by %s", s.Position+1, len(r.Sections), text.Thousands(s.Chars), ownerText(s.Owner))
		if t := s.Truncation; t != nil {
			why += fmt.Sprintf("; the limit %q cut it from %s to %s", t.Limit, text.Thousands(t.Original), text.Thousands(t.Kept))
		}
		return why
	}
	// From here on it is missing; the most certain reason goes first.
	if len(e.LeftOut) > 0 {
		return fmt.Sprintf("it was left out: %s (%s)", leftOutText(e.LeftOut[0].Reason, r.Profile), ownerText(e.LeftOut[0].Owner))
	}
	if f := r.fileOf(e.ID); f != nil {
		return whyFile(f)
	}
	for i := range e.Plugins {
		if p := &e.Plugins[i]; p.State != phases.PluginReady {
			return fmt.Sprintf("the plugin %s, which may write it, is %s: %s", p.Plugin, p.State, detailText(p))
		}
	}
	for i := range e.Runs {
		if run := &e.Runs[i]; !run.State.Completed() {
			return run.Subscription + ", which may write it, gave nothing: " + stateText(run)
		}
	}
	if len(e.Runs) > 0 {
		return "no hook contributed it: those that may write it ran and gave nothing for it"
	}
	return "no hook contributed it: no plugin that may write it has a hook that ran"
}

// ownerText names an owner in a sentence.
func ownerText(owner string) string {
	switch owner {
	case phases.OwnerBuiltin:
		return "the compiler"
	case phases.OwnerHost:
		return "the host"
	}
	return "the plugin " + owner
}

// leftOutText says what a reason means.
func leftOutText(reason string, profile phases.Profile) string {
	switch reason {
	case "budget":
		return "no room was left for it (budget)"
	case "profile":
		return "the profile " + string(profile) + " does not have it (profile)"
	case "blank":
		return "it has no text (blank)"
	case "filtered":
		return "its condition is not met (filtered)"
	case "duplicate":
		return "the same was delivered before (duplicate)"
	case string(phases.CauseConflict):
		return "another subscription holds the slot (conflict)"
	case string(phases.CauseForbidden):
		return "its plugin is not granted it (forbidden)"
	}
	return reason
}

// whySubscription is the answer in a sentence. Of several runs the last counts.
func whySubscription(e *explanation) string {
	if len(e.Runs) == 0 {
		for i := range e.Plugins {
			p := &e.Plugins[i]
			return fmt.Sprintf("the plugin %s is %s and has not described its hooks: %s", p.Plugin, p.State, detailText(p))
		}
	}
	run := &e.Runs[len(e.Runs)-1]
	if n := len(e.HookSources); n > 0 {
		why := fmt.Sprintf("%s, and %d of its contributions %s kept", stateText(run), n, plural(n, "was", "were"))
		if run.State.Completed() {
			return why
		}
		return why + " as its fallback"
	}
	switch {
	case run.Stage == phases.StageTool && run.Code == phases.CodeToolError:
		return "the tool was called, and told the model of a failure (" + run.Code + ")"
	case run.Stage == phases.StageTool:
		return "the tool was called: " + stateText(run)
	case run.State.Completed() && len(e.LeftOut) > 0:
		return stateText(run) + ", and what it contributed was left out: " + leftOutText(e.LeftOut[0].Reason, "")
	case run.State.Completed():
		return stateText(run) + " and contributed nothing that was kept"
	}
	return stateText(run)
}

// plural chooses a verb by a count.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// stateText says what became of a run, as the rest of a sentence about it.
func stateText(run *phases.Run) string {
	switch run.State {
	case phases.StateSucceeded:
		return "it ran"
	case phases.StateDenied:
		return "it ran and denied"
	case phases.StateCached:
		return "its answer came from the cache"
	case phases.StateFiltered:
		return "its condition was false for " + inputText(run) + ", so it did not run"
	case phases.StateDisabled:
		return "it is switched off (" + run.Code + ")"
	case phases.StateShadowed:
		if run.Verdict != "" {
			return "it ran in the shadow, and would have decided " + string(run.Verdict) + ": nothing of it is applied"
		}
		return "it ran in the shadow: nothing of it is applied"
	case phases.StateQueued:
		return "it runs in the background"
	case phases.StateTimedOut:
		return fmt.Sprintf("it was still working when its time was up, after %s ms", millis(run.DurationMS))
	case phases.StateUnavailable:
		return "its plugin took no calls (" + run.Code + ")"
	case phases.StateBudgetExhausted:
		return "no time was left to start it (" + run.Code + ")"
	case phases.StateCancelled:
		return "it was cancelled (" + run.Code + ")"
	default:
		return "it failed (" + codeText(run) + ")"
	}
}

// inputText says which version of a phase's input a run was about.
func inputText(run *phases.Run) string {
	if len(run.RewrittenBy) == 0 {
		return "the input as the host gave it"
	}
	return "the input as " + strings.Join(run.RewrittenBy, ", ") + " had rewritten it"
}

// quotedList is a list for an error message, bounded: a turn may have hundreds of
// subscriptions.
func quotedList(ids []string) string {
	const most = 20
	if len(ids) > most {
		return strings.Join(ids[:most], ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
	}
	return strings.Join(ids, ", ")
}

// printExplanation prints an explanation for people.
func (a *app) printExplanation(e *explanation) {
	answer := "is in the prompt"
	switch {
	case !e.In:
		answer = "is not in the prompt"
	case e.Kind == explainsSubscription:
		answer = "contributed"
	}
	a.printf("%s %s %s: %s\n", e.Kind, clean(e.ID), answer, clean(e.Why))
	a.printSections(e.Sections)
	t := newTable("contributions", "contribution", "subscription", "kind", "section", ">priority", "truncation", "hash")
	for i := range e.HookSources {
		h := &e.HookSources[i]
		t.add(h.ContributionID, h.SubscriptionID, h.ContributionKind, h.SectionID, h.Priority, h.Truncation, h.ContributionHash)
	}
	a.printTable(t)
	t = newTable("sources", "kind", "id", "label")
	for i := range e.Sections {
		for _, s := range e.Sections[i].SourceRefs {
			t.add(s.Kind, s.ID, s.Label)
		}
	}
	a.printTable(t)
	a.printLeftOut(e.LeftOut)
	a.printRuns(e.Runs, true)
	a.printPlugins("plugins", e.Plugins)
	t = newTable("diagnostics", "severity", "code", "about", "message")
	for _, d := range e.Diagnostics {
		t.add(d.Severity, d.Code, d.HookSource, d.Message)
	}
	a.printTable(t)
}
