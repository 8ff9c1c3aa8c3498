package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/persona"
	"github.com/grapnelhq/grapnel/internal/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/words"
	"github.com/grapnelhq/grapnel/phases"
)

// whySection says where the section is, or the most certain reason for its absence.
func (r *Record) whySection(e *Result) string {
	lost := e.undelivered()
	if len(e.Sections) > 0 {
		s := &e.Sections[0]
		why := fmt.Sprintf("it is section %d of %d, %s characters by %s", s.Position+1, len(r.Sections), text.Thousands(s.Chars), ownerText(s.Owner))
		if t := s.Truncation; t != nil {
			why += fmt.Sprintf("; the limit %q cut it from %s to %s", t.Limit, text.Thousands(t.Original), text.Thousands(t.Kept))
		}
		return why + lost
	}
	if len(e.Omitted) > 0 {
		return fmt.Sprintf("it was omitted: %s (%s)", omittedText(e.Omitted[0].Reason, r.Profile), ownerText(e.Omitted[0].Owner))
	}
	if f := r.fileOf(e.ID); f != nil {
		return cmp.Or(map[string]string{
			persona.StatusMissing: f.Path + " is not in the persona directory",
			persona.StatusLoaded:  f.Path + " in the persona directory is empty",
		}[f.Status], fmt.Sprintf("%s in the persona directory was not read (%s)", f.Path, f.Status))
	}
	if lost != "" {
		return strings.TrimPrefix(lost, "; ")
	}
	for i := range e.Plugins {
		if p := &e.Plugins[i]; p.State != phases.PluginReady {
			return fmt.Sprintf("the plugin %s, which may write it, is %s: %s", p.Plugin, p.State, Detail(p))
		}
	}
	// What failed is the reason rather than what ran and had nothing to say, and that rather than what did not run.
	for _, reason := range []func(phases.RunState) bool{failedRun, phases.RunState.Completed, func(phases.RunState) bool { return true }} {
		if i := slices.IndexFunc(e.Runs, func(run phases.Run) bool { return reason(run.State) }); i >= 0 {
			return r.whyNothing(&e.Runs[i], e.ID)
		}
	}
	if row := sections.Lookup(e.ID); row != nil && !row.Hooks {
		return row.Absent
	}
	return "no hook contributed it" + words.If(r.Claims != nil, ": no plugin that may write it has a hook that ran")
}

// undelivered says what did not reach the model.
func (e *Result) undelivered() (why string) {
	for i := range e.Diagnostics {
		if d := &e.Diagnostics[i]; d.Code == phases.CodeNotDelivered {
			why += "; " + d.Message
		}
	}
	return why
}

// whyNothing says why a run that may write a section did not.
func (r *Record) whyNothing(run *phases.Run, section string) string {
	row := sections.Lookup(section)
	ours := slices.ContainsFunc(r.Plugins, func(p phases.PluginRow) bool { return p.Plugin == run.Plugin && p.SHA256 == phases.OwnerBuiltin })
	if run.State.Completed() && ours && row != nil {
		return run.Subscription + ", which writes it, ran, and " + row.Absent
	}
	return run.Subscription + ", which may write it, gave nothing: " + stateText(run)
}

func failedRun(s phases.RunState) bool {
	return !s.Completed() && s != phases.StateFiltered && s != phases.StateDisabled && s != phases.StateShadowed && s != phases.StateQueued
}

func ownerText(owner string) string {
	return cmp.Or(map[string]string{phases.OwnerBuiltin: "the compiler", phases.OwnerHost: "the host"}[owner], "the plugin "+owner)
}

func omittedText(reason string, profile phases.Profile) string {
	return cmp.Or(map[string]string{
		compiler.ReasonBudget:         "its text budget is used up (budget)",
		compiler.ReasonProfile:        "the profile " + string(profile) + " does not have it (profile)",
		compiler.ReasonBlank:          "it has no text (blank)",
		compiler.ReasonHostCannot:     "the host takes only texts of hooks (host_cannot)",
		compiler.ReasonFiltered:       "its condition is not met (filtered)",
		"duplicate":                   "the same was delivered before (duplicate)",
		string(phases.CauseConflict):  "another subscription holds the slot (conflict)",
		string(phases.CauseForbidden): "its plugin is not granted it (forbidden)",
	}[reason], reason)
}

// Of several runs the last counts.
func whySubscription(e *Result) string {
	if len(e.Runs) == 0 {
		for i := range e.Plugins {
			p := &e.Plugins[i]
			return fmt.Sprintf("the plugin %s is %s and has not described its hooks: %s", p.Plugin, p.State, Detail(p))
		}
	}
	run := &e.Runs[len(e.Runs)-1]
	if n := len(e.HookSources); n > 0 {
		why := fmt.Sprintf("%s, and %d of its contributions %s kept", stateText(run), n, words.Plural(n, "was", "were"))
		if run.State.Completed() {
			return why + e.undelivered()
		}
		return why + " as its fallback"
	}
	switch {
	case run.Stage == phases.StageTool && run.Code == phases.CodeToolError:
		return "the tool was called, and reported a failure to the model (" + run.Code + ")"
	case run.Stage == phases.StageTool:
		return "the tool was called: " + stateText(run)
	case run.State.Completed() && len(e.Omitted) > 0:
		return stateText(run) + ", and what it contributed was omitted: " + omittedText(e.Omitted[0].Reason, "")
	case run.State.Completed():
		return stateText(run) + " and contributed nothing that was kept"
	}
	return stateText(run)
}

func stateText(run *phases.Run) string {
	switch run.State {
	case phases.StateFiltered:
		if run.Attempts > 0 {
			return "it said that it is not for this input, by a condition of its own such as a matcher, and did nothing"
		}
		if len(run.RewrittenBy) == 0 {
			return "its condition was false for the input as the host gave it, so it did not run"
		}
		return "its condition was false for the input as " + strings.Join(run.RewrittenBy, ", ") + " had rewritten it, so it did not run"
	case phases.StateShadowed:
		return "it ran in the shadow" + words.If(run.Verdict != "", ", and would have decided "+string(run.Verdict)) + ": nothing of it is applied"
	case phases.StateTimedOut:
		return fmt.Sprintf("it was still working when its time was up, after %s ms", words.Millis(run.DurationMS))
	}
	return cmp.Or(map[phases.RunState]string{
		phases.StateSucceeded:       "it ran",
		phases.StateDenied:          "it ran and denied",
		phases.StateCached:          "its answer came from the cache",
		phases.StateDisabled:        "it is switched off (" + run.Code + ")",
		phases.StateQueued:          "it runs in the background",
		phases.StateUnavailable:     "its plugin took no calls (" + run.Code + ")",
		phases.StateBudgetExhausted: "no time was left to start it (" + run.Code + ")",
		phases.StateCancelled:       "it was cancelled (" + run.Code + ")",
	}[run.State], "it failed ("+Code(run)+")")
}

// Code is what a run failed with, and the plugin's own code if it gave one.
func Code(r *phases.Run) string {
	if r.State == phases.StateShadowed && r.Verdict != "" {
		return strings.TrimSuffix("would "+string(r.Verdict)+": "+r.ReasonCode, ": ")
	}
	if r.PluginCode == "" {
		return r.Code
	}
	return r.Code + ": " + r.PluginCode
}

const maxDetail = 160 // bounds what is quoted of a message

// Detail is what is wrong with a plugin, with its code.
func Detail(row *phases.PluginRow) string {
	message, code := text.Sanitize(row.Message, maxDetail), "("+row.Code+")"
	if row.Code == "" || strings.HasSuffix(row.Message, code) {
		return message
	}
	return strings.TrimSpace(message + " " + code)
}

// PluginOf is the plugin of a subscription: what stands before the first dot.
func PluginOf(subscription string) string {
	plugin, _, _ := strings.Cut(subscription, ".")
	return plugin
}
