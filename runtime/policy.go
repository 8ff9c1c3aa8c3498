package runtime

import (
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/phases"
)

// applyPolicy applies the failure policy of a failed hook. Shadow hooks never affect the outcome.
func (d *dispatch) applyPolicy(c *call) {
	if c.failure == nil || c.sub.Perhaps() {
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

func (d *dispatch) failClosed(c *call) {
	if d.failed == nil {
		at := *c.failure
		at.Phase, at.Subscription, at.Visibility = d.phase.Row.Phase, c.sub.ID, c.sub.Visibility
		d.failed = &at
	}
}

// useFallback replaces the answer by copies of the fallback contributions, which pass the same checks. If nothing is
// left of them, a hook that may decide fails closed: a guard must not open because of a missing grant.
func (d *dispatch) useFallback(c *call) {
	admitted, err := merge.Admit(d.phase.Row, &c.hook.merge, pool.CloneContributions(c.sub.Fallback))
	c.dropped = append(c.dropped, admitted.Dropped...)
	c.notes = append(c.notes, admitted.Diagnostics...)
	switch {
	case err == nil && len(admitted.Entries) > 0:
		c.entries = append(c.entries, admitted.Entries...)
		c.mark.fallback = len(admitted.Entries)
		d.failOpen(c, fallbackUsed)
	case slices.Contains(c.sub.Kinds, phases.KindDecision):
		d.failClosed(c)
	default:
		d.failOpen(c, fallbackRefused)
	}
}

// failOpen marks a failure that did not stop its phase. markKept words it once all is merged.
func (d *dispatch) failOpen(c *call, use fallbackUse) {
	c.mark.row, c.mark.use = len(c.notes)+1, use
	c.notes = append(c.notes, phases.Diagnostic{
		Code: phases.CodeFailOpen, Severity: phases.SeverityWarning, Plugin: c.sub.Plugin, Subscription: c.sub.ID, Cause: c.failure.Code,
		SafeForUser: c.failure.SafeForUser, Visibility: c.sub.Visibility,
	})
	d.engine.emit(Event{
		Kind: EventFailOpen, Plugin: c.sub.Plugin, Subscription: c.sub.ID, Phase: d.phase.Row.Phase, Code: string(c.failure.Code),
		Message: c.failure.For(phases.AudienceOperator).Message, Detail: phases.DetailOf(c.failure),
	})
}

// markKept words the mark of a hook that failed open, by how much of it was kept.
func (c *call) markKept(kept int) {
	if c.mark.row == 0 {
		return
	}
	note := &c.notes[c.mark.row-1]
	what := c.keptText(kept)
	note.Message = fmt.Sprintf("%s failed (%s: %s); %s", c.sub.ID, c.failure.Code, c.failure.Message, what)
	if c.failure.Detail != "" {
		note.Detail = fmt.Sprintf("%s failed (%s: %s); %s", c.sub.ID, c.failure.Code, c.failure.Detail, what)
	}
}

func (c *call) keptText(kept int) string {
	all := len(c.entries) + len(c.dropped)
	count := fmt.Sprintf("%d of its %d contributions were kept", kept, all)
	switch {
	case c.mark.use == fallbackRefused && kept == 0:
		return "its fallback was refused, and nothing of it was kept"
	case c.mark.use == fallbackRefused:
		return "its fallback was refused; " + count
	case c.mark.use == fallbackUsed && kept == 0:
		return "nothing of it was kept, nor of its fallback"
	case c.mark.use == fallbackUsed && len(c.entries) == c.mark.fallback && kept == c.mark.fallback:
		return "its fallback was used"
	case c.mark.use == fallbackUsed:
		return count + ", its fallback included"
	case kept == 0:
		return "nothing of it was kept"
	default:
		return count
	}
}
