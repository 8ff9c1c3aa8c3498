package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// printPlan prints a plan. Phases without any subscription are left away unless
// one was asked for.
func (a *app) printPlan(doc plan.Document, rows []phases.PluginRow, asked bool, from origin) {
	something := false
	for i := range doc.Phases {
		ph := &doc.Phases[i]
		if len(ph.Stages)+len(ph.Off)+len(ph.Require) == 0 && !asked {
			continue
		}
		if something {
			a.println()
		}
		something = true
		a.printPhase(ph)
	}
	if !something {
		a.printf("no plugin subscribes to anything (%s)\n", clean(from.name()))
	}
	a.printPlugins("plugins not ready: hooks that they never described are not in the plan", notReady(rows))
}

// printPhase prints one phase. Rows stand in the order of the plan, which is the
// order of results whatever the order of completion.
func (a *app) printPhase(ph *plan.PhaseView) {
	a.printf("%s", rule(string(ph.Phase)))
	if ph.BudgetMS > 0 {
		a.printf("budget %s ms", millis(ph.BudgetMS))
	} else {
		a.printf("in the background")
	}
	if len(ph.Require) > 0 {
		a.printf(", requires %s", strings.Join(ph.Require, ", "))
	}
	a.println()
	t := newTable("", "stage", ">layer", "subscription", "plugin", ">priority", ">timeout ms", "on_failure", "when", "needs", "withheld")
	for _, stage := range ph.Stages {
		for i, layer := range stage.Layers {
			for j := range layer {
				s := &layer[j]
				t.add(stage.Role, i, s.Subscription, s.Plugin, s.Priority, timeoutText(s), failureText(s.OnFailure), s.When, strings.Join(s.Needs, ", "), withheldText(s))
			}
		}
	}
	a.printTable(t)
	if len(t.rows)+len(ph.Off) == 0 {
		a.println("  nothing is subscribed to this phase")
	}
	off := newTable("off", "subscription", "reason")
	for _, o := range ph.Off {
		off.add(o.Subscription, o.Reason)
	}
	a.printTable(off)
}

// withheldText is what a hook lacks: of what it needs, or of the input if it does not
// say what that is.
func withheldText(s *plan.SubscriptionView) string {
	var lacks []string
	for _, name := range s.Withheld {
		if slices.Contains(s.Needs, name) || len(s.Needs) == 0 && !slices.Contains(phases.SeenSets(), name) {
			lacks = append(lacks, name)
		}
	}
	return strings.Join(lacks, ", ")
}

// timeoutText shows both timeouts where the proposed one was lowered.
func timeoutText(s *plan.SubscriptionView) string {
	if s.ProposedTimeoutMS == s.TimeoutMS {
		return millis(s.TimeoutMS)
	}
	return millis(s.ProposedTimeoutMS) + " -> " + millis(s.TimeoutMS)
}

// failureText is a failure policy on one line.
func failureText(f phases.OnFailure) string {
	words := []string{string(f.Default)}
	for _, cause := range slices.Sorted(maps.Keys(f.ByCause)) {
		words = append(words, string(cause)+": "+string(f.ByCause[cause]))
	}
	return strings.Join(words, ", ")
}
