package telemetry

import (
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// other stands for a word that is in no list, as OpenTelemetry's conventions call
// it.
const other = "_OTHER"

// maxWord is the length of the longest name that is exported: a subscription's,
// which is a plugin's and a hook's with a dot between them.
const maxWord = phases.MaxIDBytes + 1

// words are the closed lists: what is in none of them is not exported. They are read
// only.
type words struct {
	states, causes, limits, stages, dropped, jobs, reloads, manifests map[string]bool
}

func newWords() words {
	w := words{
		states: set(
			phases.StateSucceeded, phases.StateDenied, phases.StateFailed, phases.StateTimedOut, phases.StateCancelled, phases.StateFiltered,
			phases.StateDisabled, phases.StateUnavailable, phases.StateBudgetExhausted, phases.StateCached, phases.StateShadowed, phases.StateQueued,
		),
		causes: set(phases.FailureCauses()...),
		limits: set(phases.LimitPlugin, phases.LimitContribution, phases.LimitSubscription, phases.LimitSection, phases.LimitTotal),
		stages: set(phases.StageTool, phases.StageHost),
		// The reasons of internal/wire, of which the engine makes codes.
		dropped: set("late", "double", "stale", "unknown_id", "unsupported", "unreadable", "invalidation"),
		jobs: set(
			string(runtime.JobDone), string(runtime.JobRetry), string(runtime.JobRequeue), string(runtime.JobDead),
			"refused", "duplicate", "lost",
		),
		reloads:   set("in_force", "refused"),
		manifests: set("not_kept", "kept_late", "usage_not_kept", "audits_not_kept", "previous_unavailable"),
	}
	for _, r := range phases.Roles() {
		w.stages[string(r)] = true
	}
	// Codes that are no failures of a hook, or no causes at all.
	for _, code := range []string{
		string(phases.CauseDenied), string(phases.CauseCancelled), string(phases.CauseInterrupted), phases.CodeToolError, phases.CodeNotGranted, "operator", "phase_failed",
	} {
		w.causes[code] = true
	}
	return w
}

func set[T ~string](list ...T) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[string(s)] = true
	}
	return m
}

// closed is the word if the list has it; an empty one stays empty.
func closed[T ~string](list map[string]bool, word T) string {
	if word == "" || list[string(word)] {
		return string(word)
	}
	return other
}

// plain is a name as it may be exported: what looks like none is left out. Names of
// plugins, hooks and tools have this form anyway, and versions nearly always; what
// passes can be no sentence.
func plain(name string) string {
	if len(name) > maxWord {
		return ""
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.', c == '_', c == '-', c == ':', c == '/', c == '+':
		default:
			return ""
		}
	}
	return name
}

// failureOf is the cause of a run that failed, as error.type has it; "" for one that
// did not.
func (w *words) failureOf(run *phases.Run) string {
	switch run.State {
	case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable, phases.StateBudgetExhausted:
		if run.Code == "" {
			return other
		}
		return closed(w.causes, run.Code)
	case phases.StateSucceeded:
		if run.Code == phases.CodeToolError {
			return phases.CodeToolError
		}
	}
	return ""
}

// asked reports whether the plugin, or for a call of the model the host, was given
// the call. A row from memory names the incarnation that had answered.
func asked(run *phases.Run) bool {
	if run.Phase == phases.PhaseHostCall {
		return run.Attempts > 0
	}
	return run.Incarnation > 0 && run.Attempts > 0
}

// named reports whether the names in a row are the configuration's. Who calls a tool
// may name one, and a plugin, that there is not; such a call is never tried.
func named(run *phases.Run) bool { return run.Phase != phases.PhaseToolCall || run.Attempts > 0 }
