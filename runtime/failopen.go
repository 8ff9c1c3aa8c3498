package runtime

import (
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// fallbackUse says what became of the fallback of a hook that failed open.
type fallbackUse string

const (
	fallbackNone    fallbackUse = "none"
	fallbackUsed    fallbackUse = "used"
	fallbackRefused fallbackUse = "refused"
)

// failMark is the mark of a hook that failed and did not stop its phase.
type failMark struct {
	// row is its place among the notes of the call, from 1; 0 without one.
	row int
	use fallbackUse
	// fallback is how many contributions the fallback has added.
	fallback int
}

// failOpen leaves the mark that every failure leaves which did not stop its
// phase. What was kept of the hook is known when all is merged; see markKept.
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

// markKept words the mark of a hook that failed open, by what the ledger says was
// kept of it.
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

// keptText says how much of a failed hook's answer, and of its fallback, was kept.
func (c *call) keptText(kept int) string {
	all := len(c.entries) + len(c.dropped)
	count := fmt.Sprintf("%d of its %d contributions were kept", kept, all)
	switch {
	case c.mark.use == fallbackRefused && kept == 0:
		return "its fallback was refused, and nothing of it was kept"
	case c.mark.use == fallbackRefused:
		return "its fallback was refused; " + count
	case c.mark.use == fallbackUsed && kept == 0:
		return "nothing of it was kept, its fallback neither"
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
