package runtime

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// needsTurn says what a subscription needs of a turn, in words; empty if it can do
// without one. A hook needs a turn if its condition reads policies, or if it decides
// and says that it needs policies or contexts: without a turn there are none, and it
// would allow. Where it does not say what it needs the operator's grants tell, by name; a
// wildcard does not say that the plugin has to see them. Any other hook says less
// without a turn, not more.
func needsTurn(sub *plan.Subscription) string {
	if read := sub.Condition.Policies(); len(read) > 0 {
		return "its condition reads " + strings.Join(read, ", ")
	}
	if !sub.Decides() || sub.Grants == nil {
		return ""
	}
	for _, name := range []string{phases.SeePolicy, phases.SeeContext} {
		switch {
		case slices.Contains(sub.Needs, name):
			return "it decides and needs to see the turn's state (" + name + ")"
		case len(sub.Needs) == 0 && slices.Contains(sub.Grants.See, name):
			return "it decides by what it sees of the turn (see: " + name + ")"
		}
	}
	return ""
}

// turnNeeded is why a phase cannot be dispatched without a turn; nil if it can. The
// phases of a session belong to no turn, and turn.pre_policy is the first of one:
// there a turn has nothing to add.
func turnNeeded(phase *plan.Phase) *phases.Error {
	switch phase.Row.Phase {
	case phases.SessionStart, phases.SessionResume, phases.SessionEnd, phases.PrePolicy:
		return nil
	default:
	}
	for _, sub := range phase.Expected {
		if slices.ContainsFunc(phase.Off, func(o plan.Off) bool { return o.Subscription == sub }) {
			continue
		}
		if needs := needsTurn(sub); needs != "" {
			err := phases.Errorf(phases.CauseTurnNeeded, "%s, and a dispatch without a turn has neither policies nor contexts; dispatch the phase in a turn that has been through turn.pre_policy", needs)
			err.Phase, err.Subscription, err.SafeForUser = phase.Row.Phase, sub.ID, true
			return err
		}
	}
	return nil
}

// judgeless is why a phase that decides cannot be dispatched yet: a guard of it goes by
// what turn.pre_policy brings, which has hooks and has not been dispatched in the turn.
func (t *Turn) judgeless(phase phases.Phase) error {
	p := t.gen.planned.Load().phases[phase]
	if p == nil || p.turnNeeded == nil || !p.Row.Decides() || len(t.gen.subscribed(phases.PrePolicy)) == 0 {
		return nil
	}
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	if t.scope.conduct.dispatched(phases.PrePolicy) {
		return nil
	}
	return p.turnNeeded
}
