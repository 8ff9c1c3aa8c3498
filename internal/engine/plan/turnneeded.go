package plan

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// TurnNeeded is why a phase cannot be dispatched without a turn; nil if it can. Phases of a session belong to no
// turn, and turn.pre_policy is the first of one.
func (p *Phase) TurnNeeded() *phases.Error {
	switch p.Row.Phase {
	case phases.SessionStart, phases.SessionResume, phases.SessionEnd, phases.PrePolicy:
		return nil
	default:
	}
	for _, sub := range p.Expected {
		if slices.ContainsFunc(p.Off, func(o Off) bool { return o.Subscription == sub }) {
			continue
		}
		if needs := needsTurn(sub); needs != "" {
			err := phases.Errorf(phases.CauseTurnNeeded, "%s, and a dispatch without a turn has neither policies nor contexts; dispatch the phase in a turn that has been through turn.pre_policy", needs)
			err.Phase, err.Subscription, err.SafeForUser = p.Row.Phase, sub.ID, true
			return err
		}
	}
	return nil
}

// needsTurn says what a subscription needs of a turn, in words; empty for none. A hook needs a turn if its condition
// reads policies, or if it decides and needs to see policies or contexts: without a turn there are none, and it would
// allow. If it does not declare its needs, grants by name count; a wildcard does not.
func needsTurn(sub *Subscription) string {
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
