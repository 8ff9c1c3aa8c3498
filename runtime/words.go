package runtime

import (
	"context"
	"log/slog"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// Words of plugins leave the engine on two ways only: whole into the operator's
// log, here, and by phases.Diagnostic.For and its kin to those whom the visibility
// opens them to.

// logFailure writes into the log what a plugin said of a failure, if it said
// anything: what the engine says stands in the answer.
func (e *Engine) logFailure(run *phases.Run, failure *phases.Error) {
	words := phases.DetailOf(failure)
	if words == "" {
		return
	}
	level := slog.LevelError
	if opened(failure.SafeForUser, failure.Visibility) {
		level = slog.LevelInfo
	}
	e.opts.Logger.Log(context.Background(), level, "a plugin failed", "plugin", run.Plugin, "subscription", run.Subscription, "phase", run.Phase,
		"code", failure.Code, "plugin_code", failure.PluginCode, "words", words)
}

// logRemarks writes remarks of a plugin into the log: as many of an answer as a turn
// keeps, and of each the beginning.
func (e *Engine) logRemarks(subscription string, list []phases.Diagnostic) {
	if more := len(list) - maxNotesOf; more > 0 {
		list = list[:maxNotesOf]
		defer e.opts.Logger.Warn("a plugin remarks more than is kept", "subscription", subscription, "dropped", more)
	}
	for i := range list {
		d := &list[i]
		if d.Detail == "" {
			continue
		}
		level := levelOf(d.Severity)
		if opened(d.SafeForUser, d.Visibility) {
			level = min(level, slog.LevelInfo)
		}
		e.opts.Logger.Log(context.Background(), level, "a plugin remarks", "plugin", d.Plugin, "subscription", subscription, "code", d.Code, "words", text.Head(d.Detail, maxNoteBytes))
	}
}

// opened reports whether the operator reads words of a plugin in the answer, too:
// then they are not worth a line that interrupts.
func opened(safe bool, v phases.Visibility) bool { return safe && v.Opens(phases.AudienceOperator) }

// remarksOf are the diagnostics that a hook has contributed, as remarks. Merging
// makes the same rows of them, which are not logged again.
func (c *call) remarksOf(entries []merge.Entry) []phases.Diagnostic {
	var list []phases.Diagnostic
	for i := range entries {
		if v, ok := entries[i].Value.(*phases.ManifestDiagnostic); ok {
			d := phases.Diagnostic{Code: v.Code, Severity: v.Severity, Message: v.Message, SafeForUser: v.SafeForUser}.Remark(c.sub.Visibility)
			d.Plugin, d.Subscription = c.sub.Plugin, c.sub.ID
			list = append(list, d)
		}
	}
	c.hook.in.redactor.notes(list)
	return list
}

// wordsOf are a plugin's own words about why it is in its state; "" if it is well,
// or said nothing.
func wordsOf(st *supervise.Status) string {
	if st.State == supervise.StateReady || st.Last == nil || st.Last.Err == nil {
		return ""
	}
	return phases.DetailOf(st.Last.Err)
}

// levelOfState is the level at which a plugin's state is logged. One that has
// failed with words of its own is logged nowhere else.
func levelOfState(s supervise.State, words string) slog.Level {
	if words != "" && (s == supervise.StateBackoff || s == supervise.StateQuarantined) {
		return slog.LevelError
	}
	return slog.LevelInfo
}

// conditionFailure is the failure of a condition that could not be evaluated: what
// is wrong with it may quote the values that it looked at.
func conditionFailure(err error) *phases.Error {
	return &phases.Error{Code: phases.CauseCondition, Message: "its condition could not be evaluated", Detail: err.Error(), Err: err}
}
