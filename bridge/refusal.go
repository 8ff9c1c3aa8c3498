package bridge

import (
	"strings"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// refusal adds the reminders that wait to the reason of a denied call, in their frames: some are about that call, others
// about earlier ones.
func refusal(t *loop.Turn, o Outcome, with phases.Phase) (Outcome, error) {
	_, err := t.HandReminders(with, func(reminder string) bool {
		more := strings.TrimSpace(o.Reason + "\n\n" + plain(reminder))
		fits := room{10_000, inBytes}.fits(more)
		if fits {
			o.Reason = more
		}
		return fits
	})
	return o, err
}
