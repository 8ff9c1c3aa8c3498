package bridge

import (
	"strings"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// refusal adds what plugins remind of at a denied call to its reason: with the answer to another call it would seem to be
// about that one.
func refusal(t *loop.Turn, o Outcome, with phases.Phase) (Outcome, error) {
	_, err := t.Turn.HandReminders(with, func(r *phases.MergedReminder) bool {
		more := strings.TrimSpace(o.Reason + "\n\n" + r.Text)
		fits := room{10_000, inBytes}.fits(more)
		if fits {
			o.Reason = more
		}
		return fits
	})
	return o, err
}
