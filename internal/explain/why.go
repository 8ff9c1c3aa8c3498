package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/persona"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// whySection says where the section is, or the most certain reason for its absence.
//
//nolint:gocyclo // one case for each reason
func (r *Record) whySection(e *Result) string {
	lost := e.undelivered()
	switch {
	case len(e.Sections) == 0 && r.Kind != manifest.KindPrompt:
		return "the record is not of a prompt (" + string(r.Kind) + ")"
	case len(r.Sections) == 0 && r.Blocked:
		return "the turn was blocked before there was a prompt"
	case len(e.Sections) > 0:
		s := &e.Sections[0]
		why := fmt.Sprintf("it is section %d of %d, %s characters by %s", s.Position+1, len(r.Sections), text.Thousands(s.Chars), r.ownerText(s.Owner))
		if t := s.Truncation; t != nil {
			why += fmt.Sprintf("; the limit %q cut it from %s to %s", t.Limit, text.Thousands(t.Original), text.Thousands(t.Kept))
		}
		return why + words.If(r.Blocked, "; the turn was blocked, and the prompt was not sent") + lost
	}
	if len(e.Omitted) > 0 {
		var each []string
		for _, o := range e.Omitted {
			each = append(each, fmt.Sprintf("%s (%s)", omittedText(o.Reason, r.Profile), r.ownerText(o.Owner)))
		}
		why := "it was omitted: " + few(each, "; ")
		if e.Omitted[0].Reason == compiler.ReasonHostCannot && len(e.Runs) > 0 {
			why += "; no hook contributed it: " + eachRun(e.Runs, ", ", r.runOf)
		}
		return why + lost
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
		ran := slices.ContainsFunc(e.Runs, func(run phases.Run) bool { return run.Plugin == e.Plugins[i].Plugin && run.State.Completed() })
		if p := &e.Plugins[i]; p.State != phases.PluginReady && !ran && r.Grants[p.Plugin] != nil {
			return fmt.Sprintf("the plugin %s, which may write it, is %s: %s", p.Plugin, p.State, Detail(p))
		}
	}
	row := sections.Lookup(e.ID)
	switch {
	case !forHooks(e.ID):
		return row.Absent
	case len(e.Runs) == 0:
		return "no hook contributed it: there is no run of one that may write it in the record" +
			words.If(row != nil && row.Writer != "", "; the built-in plugin "+row.Writer+" brings it, with the grant of its id")
	case slices.ContainsFunc(e.Runs, func(run phases.Run) bool { return r.Grants[run.Plugin] == nil }):
		return "no hook contributed it; of those that were expected before the prompt: " + eachRun(e.Runs, ", ", r.runOf)
	}
	// What failed comes before what ran and had nothing to say, and that before what did not run.
	rank := func(run phases.Run) int {
		return slices.Index([]bool{failedRun(run.State), run.State.Completed(), true}, true)
	}
	runs := slices.SortedStableFunc(slices.Values(e.Runs), func(a, b phases.Run) int { return cmp.Compare(rank(a), rank(b)) })
	return eachRun(runs, "; ", func(run *phases.Run) string { return r.whyNothing(run, row) })
}

// handed says which reminders were handed over, and whether some of the contributions wait for another prompt.
func (e *Result) handed() string {
	var why []string
	waiting := 0
	for i := range e.Reminders {
		m := &e.Reminders[i]
		why = append(why, fmt.Sprintf("its reminder %s (%s characters) was handed over with the %s", m.Type, text.Thousands(m.Chars), cmp.Or(words.If(m.With != "", "answer to "+string(m.With)), "prompt")))
	}
	for i := range e.HookSources {
		if h := &e.HookSources[i]; h.ContributionKind == phases.KindReminder && !slices.ContainsFunc(e.Reminders, func(m manifest.Reminder) bool {
			return m.Owner == h.SubscriptionID && m.ContributionID == h.ContributionID
		}) {
			waiting++
		}
	}
	return words.If(len(why) > 0, "; "+few(why, "; ")) + words.If(waiting > 0, "; "+words.Count(waiting, "reminder of it was", "reminders of it were")+" not handed over in this turn")
}

// undelivered says what did not reach the model.
func (e *Result) undelivered() string {
	var why []string
	for i := range e.Diagnostics {
		if d := &e.Diagnostics[i]; d.Code == phases.CodeNotDelivered {
			why = append(why, d.Message)
		}
	}
	return words.If(len(why) > 0, "; "+few(why, "; "))
}

// whyNothing says why a run that may write a section did not.
func (r *Record) whyNothing(run *phases.Run, row *sections.Row) string {
	ours := slices.ContainsFunc(r.Plugins, func(p phases.PluginRow) bool { return p.Plugin == run.Plugin && p.SHA256 == phases.OwnerBuiltin })
	usual := words.If(run.State.Completed() && ours && row != nil && row.Absent != "", ", as when ")
	if usual != "" {
		usual += row.Absent
	}
	return run.Subscription + ", which may write it, gave nothing: " + r.runText(run) + usual
}

// eachRun says something of some hooks' runs. Of many it leaves out how long each took.
func eachRun(runs []phases.Run, between string, say func(*phases.Run) string) string {
	said := make([]string, len(runs))
	for i, run := range runs {
		if len(runs) > most {
			run.DurationMS = 0
		}
		said[i] = say(&run)
	}
	return few(said, between)
}

// runOf says which hook a run is of, and what became of it.
func (r *Record) runOf(run *phases.Run) string {
	return run.Subscription + " (" + r.runText(run) + ")"
}

const most = 5 // bounds what a sentence lists

// few joins the first of some phrases, equal ones once and with their number.
func few(said []string, between string) string {
	times := map[string]int{}
	for _, s := range said {
		times[s]++
	}
	var each []string
	for _, s := range said {
		if n := times[s]; n > 0 {
			inner, closed := strings.CutSuffix(s, ")")
			each = append(each, inner+words.If(n > 1, fmt.Sprintf(", %d times", n))+words.If(closed, ")"))
		}
		times[s] = 0
	}
	if more := len(each) - most; more > 0 {
		each = append(each[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(each, between)
}

// runText says what became of a run, what it decided, and what it reported of itself for the audit trail.
func (r *Record) runText(run *phases.Run) string {
	text := stateText(run) + words.If(run.State == phases.StateSucceeded && run.Verdict != "", " and decided "+string(run.Verdict))
	var events []string
	for i := range r.Audits {
		if a := &r.Audits[i]; run.State.Completed() && a.SubscriptionID == run.Subscription && !slices.Contains(events, a.EventKind) {
			events = append(events, a.EventKind)
		}
	}
	return text + words.If(len(events) > 0, ", and reported "+strings.Join(events, ", "))
}

// runsText counts runs by what became of them.
func runsText(runs []phases.Run) string {
	var states []phases.RunState
	count := map[phases.RunState]int{}
	for i := range runs {
		if s := runs[i].State; count[s] == 0 {
			states = append(states, s)
		}
		count[runs[i].State]++
	}
	var each []string
	for _, s := range states {
		each = append(each, fmt.Sprintf("%d %s", count[s], s))
	}
	return fmt.Sprintf("%s (%s)", words.Count(len(runs), "run", "runs"), strings.Join(each, ", "))
}

func failedRun(s phases.RunState) bool {
	return !s.Completed() && s != phases.StateFiltered && s != phases.StateDisabled && s != phases.StateShadowed && s != phases.StateQueued
}

func (r *Record) ownerText(owner string) string {
	if r.Observed != "" && !slices.ContainsFunc(r.Plugins, func(p phases.PluginRow) bool { return p.Plugin == owner }) {
		return owner
	}
	return cmp.Or(map[string]string{phases.OwnerBuiltin: "the compiler", phases.OwnerHost: "the host"}[owner], "the plugin "+owner)
}

func omittedText(reason string, profile phases.Profile) string {
	return cmp.Or(map[string]string{
		compiler.ReasonBudget:         "its text budget is used up (budget)",
		compiler.ReasonProfile:        "the profile " + string(profile) + " does not have it (profile)",
		compiler.ReasonBlank:          "it has no text (blank)",
		compiler.ReasonHostCannot:     "the host takes texts of hooks and nothing else (host_cannot)",
		compiler.ReasonFiltered:       "its condition is not met (filtered)",
		"duplicate":                   "the same was delivered before (duplicate)",
		string(phases.CauseConflict):  "another subscription holds the slot (conflict)",
		string(phases.CauseForbidden): "its plugin is not granted it (forbidden)",
	}[reason], reason)
}

// Of several runs the last counts, and the others are named.
func (r *Record) whySubscription(e *Result) string {
	switch n := len(e.HookSources); {
	case len(e.Runs) == 0 && e.In:
		return "it ran before this turn" + words.If(n > 0, fmt.Sprintf(", and %d of its contributions %s kept", n, words.Plural(n, "was", "were")))
	case len(e.Runs) == 0:
		for i := range e.Plugins {
			p := &e.Plugins[i]
			return fmt.Sprintf("the plugin %s is %s and has no hooks in the plan: %s", p.Plugin, p.State, Detail(p))
		}
	}
	run := &e.Runs[len(e.Runs)-1]
	why := r.runText(run)
	if slices.ContainsFunc(e.Runs, func(other phases.Run) bool { return other.State != run.State }) {
		why = runsText(e.Runs) + "; the last: " + why
	}
	own := slices.IndexFunc(e.Omitted, func(l phases.Omitted) bool { return strings.HasPrefix(l.ID, e.ID+"#") })
	switch n := len(e.HookSources); {
	case n > 0:
		return fmt.Sprintf("%s, and %d of its contributions %s kept", why, n, words.Plural(n, "was", "were")) + e.undelivered()
	case len(e.Calls) > 0 && len(e.Omitted) == 0:
		return fmt.Sprintf("%s, and %d of its decisions counted", why, len(e.Calls))
	case run.Stage == phases.StageTool && run.Code == phases.CodeToolError:
		return "the tool was called, and reported a failure to the model (" + run.Code + ")"
	case run.Stage == phases.StageTool:
		return "the tool was called: " + why
	case run.State.Completed() && own >= 0:
		return why + ", and what it contributed was omitted: " + omittedText(e.Omitted[own].Reason, r.Profile)
	case run.State.Completed() && len(e.Omitted) > 0:
		var lost []string
		for i := range e.Omitted {
			lost = append(lost, e.Omitted[i].ID+", since "+omittedText(e.Omitted[i].Reason, r.Profile))
		}
		return why + ", and nothing that it contributed was kept; of its plugin was omitted: " + few(lost, "; ")
	case run.State.Completed():
		return why + " and contributed nothing that was kept"
	}
	return why
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
		return "it was still working when its time was up" + words.If(run.DurationMS > 0, ", after "+words.Millis(run.DurationMS)+" ms")
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
	return strings.TrimSpace(text.Sanitize(row.Message, maxDetail) + words.If(row.Code != "", " ("+row.Code+")"))
}

// PluginOf is the plugin of a subscription: what stands before the first dot.
func PluginOf(subscription string) string {
	plugin, _, _ := strings.Cut(subscription, ".")
	return plugin
}
