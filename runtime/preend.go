package runtime

import (
	"context"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// PreEnd is what hooks say about the end of a turn.
type PreEnd struct {
	// GoOn says that the turn must not end yet: the host sends Reason to the model, as it sends the user's words, and
	// compiles the prompt of another round.
	GoOn bool
	// Reason holds the reasons of all hooks that deny the end; never empty with GoOn.
	Reason string
	// Outcome is the phase's. Its reminders come with the next prompt, also where that is the next turn's.
	Outcome *phases.Outcome
}

// PreEnd dispatches turn.pre_end. Call it when the model has finished, before End: hooks that deny the end make the
// turn go on, for [phases.MaxForced] times. An ask does not, nor does a phase that failed, which is an error as of the
// other phases. Before the turn's first prompt, or runtime.turn_pre_context, the error is ErrNothingCompiled.
func (t *Turn) PreEnd(ctx context.Context, in *phases.PreEndInput) (*PreEnd, error) {
	out, err := t.Dispatch(ctx, in)
	if out == nil {
		return nil, err
	}
	end := &PreEnd{Outcome: out}
	if err == nil && out.Decision != nil && out.Decision.Verdict == phases.VerdictDeny {
		end.GoOn, end.Reason = true, goOnReason(out.Decision)
	}
	return end, err
}

func goOnReason(d *phases.Decided) string {
	var reasons []string
	for _, r := range d.Reasons {
		if r.Verdict == phases.VerdictDeny && r.Reason != "" {
			reasons = append(reasons, r.Reason)
		}
	}
	if len(reasons) == 0 {
		return "The turn must not end yet. Go on."
	}
	return strings.Join(reasons, "\n\n")
}
