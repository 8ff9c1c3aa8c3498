package main

import (
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// printOutcome prints what a dispatched phase gave.
func (a *app) printOutcome(out *phases.Outcome) error {
	if a.json {
		return a.printJSON(out)
	}
	a.printf("%s", rule(string(out.Phase)))
	a.printDecision(out.Decision)
	a.printMerged(&out.Merged)
	a.printRuns(out.Runs, false)
	a.printBackground(out.Background)
	a.printPlugins("plugins not ready", notReady(out.Plugins))
	a.printDiagnostics(out.Diagnostics)
	if len(out.Runs) == 0 {
		a.println("nothing is subscribed to this phase")
	}
	a.printf("\nused %s of %s ms\n", millis(out.Budget.UsedMS), millis(out.Budget.GrantedMS))
	return nil
}

// printBackground prints what became of background work, and what it had to remark.
func (a *app) printBackground(rows []phases.BackgroundRun) {
	t := newTable("background work", "subscription", "job", "state", "code", ">tries", ">ms", "contributions")
	var remarks []phases.Diagnostic
	for i := range rows {
		r := &rows[i]
		kinds := make([]string, len(r.Contributions))
		for i, k := range r.Contributions {
			kinds[i] = string(k)
		}
		code := r.Code
		if r.PluginCode != "" {
			code += " " + r.PluginCode
		}
		t.add(r.Subscription, r.Kind, r.State, code, r.Attempts, millis(r.DurationMS), strings.Join(kinds, ", "))
		for _, d := range r.Diagnostics {
			if d.Subscription == "" {
				d.Subscription = r.Subscription
			}
			remarks = append(remarks, d)
		}
	}
	a.printTable(t)
	a.printDiagnostics(remarks)
}

// printDecision prints the verdict and everybody's reasons, the weaker ones too:
// the strongest is not always the one that surprises.
func (a *app) printDecision(d *phases.Decided) {
	if d == nil {
		return
	}
	a.printf("decision: %s\n", d.Verdict)
	t := newTable("reasons", "verdict", "subscription", "code", "reason")
	for _, r := range d.Reasons {
		t.add(r.Verdict, r.Subscription, r.ReasonCode, r.Reason)
	}
	a.printTable(t)
}

// printMerged prints what the contributions came to; texts in full.
func (a *app) printMerged(m *phases.Merged) {
	a.printPolicies(m.Policies)
	a.printRewrites(m.Rewrites)
	t := newTable("tools", "tool", "owner", "bundle")
	for i := range m.Tools {
		t.add(m.Tools[i].Name, m.Tools[i].Owner, m.Tools[i].BundleID)
	}
	a.printTable(t)
	a.printReminders(m.Reminders)
	t = newTable("sections", "section", "owner", "stability", ">priority", ">chars", "cut")
	for i := range m.Sections {
		s := &m.Sections[i]
		t.add(s.SectionID, s.Owner, s.Stability, s.Priority, text.Thousands(text.Chars(s.Content)), cutText(s.Truncation))
	}
	a.printTable(t)
	t = newTable("contexts", "context", "owner", "domain", ">priority", ">chars", "cut")
	for i := range m.Contexts {
		c := &m.Contexts[i]
		t.add(c.ContributionID, c.Owner, c.Domain, c.Priority, text.Thousands(text.Chars(c.Content)), cutText(c.Truncation))
	}
	a.printTable(t)
	for i := range m.Sections {
		a.printf("\n%s%s", rule("section "+clean(m.Sections[i].SectionID)), endLine(m.Sections[i].Content))
	}
	for i := range m.Contexts {
		a.printf("\n%s%s", rule("context "+clean(m.Contexts[i].ContributionID)), endLine(m.Contexts[i].Content))
	}
}

// printRewrites prints rewrites in the order of their application.
func (a *app) printRewrites(list []phases.MergedRewrite) {
	t := newTable("rewrites", "path", "value", "owner")
	for _, r := range list {
		t.add(r.Path, string(r.Value), r.Owner)
	}
	a.printTable(t)
}
