package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/phases"
)

// recordOpen ends and reports the open turns of a closed engine, and keeps what happened in them after their prompts.
func (e *Engine) recordOpen(ctx context.Context) {
	until := time.Now().Add(endTime)
	for _, t := range e.open.All() {
		if !t.takeEnd() {
			continue
		}
		unrecorded := e.keeper != nil && t.state.Unrecorded(false)
		t.note(nil, phases.Diagnostic{Code: codeTurnNotEnded, Severity: phases.SeverityWarning, Message: "the engine was closed before the host ended this turn (Turn.End)"})
		switch {
		case !unrecorded:
		case time.Now().Before(until):
			_ = t.keepEvents(ctx, false) // it is reported
		default:
			e.sinkFailed(stateNotKept, "what happened in an open turn was not kept", t.begun.TurnID, ErrClosed)
		}
		t.leave()
	}
}

// Codes of what a host has left undone in a turn.
const (
	// codeRemindersUndelivered: no prompt delivered these reminders, and no later one will.
	codeRemindersUndelivered = "reminders_undelivered"
	// codePromptNotReported: nothing is known of what became of a prompt.
	codePromptNotReported = "prompt_not_reported"
	// codeTurnNotEnded: the host dropped a turn, or closed the engine, without Turn.End.
	codeTurnNotEnded = "turn_not_ended"
)

// noteUndone notes what the host has not done by the end of the turn. A turn that did not succeed may have ended
// before the host could do it.
func (t *turn) noteUndone(in *phases.PostTurnInput, out *phases.Outcome) {
	t.passOnTo(out)
	n := t.usage.Silent()
	succeeded := in.Status == phases.TurnSucceeded || in.Status == ""
	if remark, wrong := t.state.EndRemark(t.gen.planned.Load().phases[phases.PreEnd].Running()); wrong && succeeded && t.usage.Prompts() > 0 {
		t.note(out, remark)
	}
	if n > 0 && succeeded && in.Usage == (phases.Usage{}) {
		t.note(out, phases.Diagnostic{
			Code: codePromptNotReported, Severity: phases.SeverityInfo, SafeForUser: true,
			Message: fmt.Sprintf("the host reported nothing about %s of this turn (Turn.ReportUsage, Turn.ReportRequest): whether its tools and reminders reached the model is not known", prompts(n)),
		})
	}
}

func prompts(n int) string {
	if n == 1 {
		return "a prompt"
	}
	return fmt.Sprintf("%d prompts", n)
}

// passOn leaves the reminders that no prompt delivered to the session's next turn.
func (t *turn) passOn() { t.passOnTo(nil) }

func (t *turn) passOnTo(out *phases.Outcome) {
	left := t.state.TakeReminders()
	lost := t.engine.sessions.Leave(t.begun, left)
	if len(lost) == 0 {
		return
	}
	t.note(out, undelivered(&t.begun, lost, false))
}

// undelivered is about reminders of a context that no prompt delivers.
func undelivered(c *phases.Context, lost []phases.MergedReminder, ended bool) phases.Diagnostic {
	owners := make([]string, len(lost))
	for i := range lost {
		owners[i] = lost[i].Type + " by " + lost[i].Owner
	}
	slices.Sort(owners)
	why := "and without a session none are left to another turn"
	switch {
	case ended:
		why = "and the session has ended"
	case c.SessionID != "":
		why = "and the session has too many already"
	}
	return phases.Diagnostic{
		Code: codeRemindersUndelivered, Severity: phases.SeverityWarning,
		Message: fmt.Sprintf("no prompt delivered %d reminders (%s), %s", len(lost), strings.Join(slices.Compact(owners), ", "), why),
	}
}

// skipped returns the rows of the hooks that a compilation would have run after the phase that stopped it.
func (t *Turn) skipped(ctx context.Context, in *CompileInput) []phases.Run {
	code := codePhaseFailed
	if bounded.Cancelled(ctx) {
		code = string(phases.CauseCancelled)
	}
	var rows []phases.Run
	for _, p := range []phases.Phase{
		phases.PrePolicy, phases.PrePromptContext, phases.PostPreflight, phases.PreTools, phases.PrePromptCompile, phases.PostPromptCompile,
	} {
		if t.state.Dispatched(p) || p == phases.PostPreflight && len(in.RecallPlan) == 0 {
			continue
		}
		for _, run := range t.gen.planned.Load().phases[p].runs {
			if run.State == "" {
				run.State, run.Code = phases.StateCancelled, code
			}
			rows = append(rows, run)
		}
	}
	return rows
}

// note puts a diagnostic on record, emits it, and adds it to an outcome if there is one.
func (t *turn) note(out *phases.Outcome, d phases.Diagnostic) {
	t.state.Note(d)
	t.engine.emit(Event{Kind: EventDiagnostic, State: string(d.Severity), Code: d.Code, Message: d.Message})
	if d.Severity != phases.SeverityInfo {
		t.engine.opts.Logger.Warn(d.Message, "code", d.Code, "turn", t.begun.TurnID) //nolint:sloglint // a literal of this file
	}
	if out != nil {
		out.Diagnostics = append(out.Diagnostics, d)
	}
}

// notEnded reports a turn that the host dropped.
func (e *Engine) notEnded(turnID string) {
	if e.isClosed() {
		return
	}
	const message = "the host dropped a turn that it had not ended (Turn.End): its turn.post_turn did not run"
	e.emit(Event{Kind: EventDiagnostic, State: string(phases.SeverityWarning), Code: codeTurnNotEnded, Message: message})
	e.opts.Logger.Warn(message, "code", codeTurnNotEnded, "turn", turnID)
}
