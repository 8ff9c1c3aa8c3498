package runtime

import (
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// applyPolicy does what the operator wants of a failed hook. Of a shadow hook
// nothing is applied, its failure neither.
func (d *dispatch) applyPolicy(c *call) {
	if c.failure == nil {
		return
	}
	word := c.sub.OnFailure.For(c.failure.Code)
	switch {
	case c.sub.Shadow:
		if word == phases.FailClosed && c.sub.Decides() {
			c.run.Verdict, c.run.ReasonCode = phases.VerdictDeny, string(c.failure.Code)
		}
		c.notes = append(c.notes, phases.Diagnostic{
			Code: string(c.failure.Code), Severity: phases.SeverityInfo, Plugin: c.sub.Plugin, Subscription: c.sub.ID,
			Message: fmt.Sprintf("the shadow hook %s failed and would have been treated as %s: %s", c.sub.ID, word, c.failure.Message),
			Detail:  c.failure.Detail, SafeForUser: c.failure.SafeForUser, Visibility: c.sub.Visibility, Cause: c.failure.Code,
		})
	case word == phases.FailClosed:
		d.failClosed(c)
	case word == phases.UseInstead:
		d.useFallback(c)
	default:
		d.failOpen(c, fallbackNone)
	}
}

// failClosed fails the phase; the first reason stays.
func (d *dispatch) failClosed(c *call) {
	if d.failed == nil {
		d.failed = d.located(c, c.failure)
	}
}

// useFallback puts the fallback contributions in the place of the answer. They
// pass the same checks as real ones, and are copies: the host may do with them
// what it likes. Where nothing of them is left, a hook that
// may decide fails closed: a guard must not open because of a missing grant.
func (d *dispatch) useFallback(c *call) {
	admitted, err := merge.Admit(d.phase.Row, &c.hook.merge, cloneContributions(c.sub.Fallback))
	c.dropped = append(c.dropped, admitted.Dropped...)
	c.notes = append(c.notes, admitted.Diagnostics...)
	if err == nil && len(admitted.Entries) > 0 {
		c.entries = append(c.entries, admitted.Entries...)
		c.mark.fallback = len(admitted.Entries)
		d.failOpen(c, fallbackUsed)
		return
	}
	if slices.Contains(c.sub.Kinds, phases.KindDecision) {
		d.failClosed(c)
		return
	}
	d.failOpen(c, fallbackRefused)
}

// located says where an error happened.
func (d *dispatch) located(c *call, err *phases.Error) *phases.Error {
	at := *err
	at.Phase, at.Subscription, at.Visibility = d.phase.Row.Phase, c.sub.ID, c.sub.Visibility
	return &at
}

// fail settles a call with a failure; the policy is applied later, in plan
// order.
func (c *call) fail(err *phases.Error) {
	c.failure, c.settled = err, true
	if c.sub != nil && err.Visibility != c.sub.Visibility { // one error may be that of several calls
		own := *err
		own.Visibility, c.failure = c.sub.Visibility, &own
	}
	c.run.Code, c.run.PluginCode = string(err.Code), err.PluginCode
	switch err.Code {
	case phases.CauseTimeout:
		c.run.State = phases.StateTimedOut
	case phases.CauseBudgetExhausted:
		c.run.State = phases.StateBudgetExhausted
	case phases.CauseUnavailable, phases.CauseQuarantined, phases.CauseBreakerOpen:
		c.run.State = phases.StateUnavailable
	case phases.CauseCancelled:
		c.run.State, c.failure = phases.StateCancelled, nil
	default:
		c.run.State = phases.StateFailed
	}
}
