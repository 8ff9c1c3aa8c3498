package turnstate

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// MaxWordChars bounds a plugin's own word in a record.
const MaxWordChars = 128

// maxLedgerBytes bounds the ledger, in memory and in each manifest of the turn.
const maxLedgerBytes = 4 << 20

type ledger struct {
	runs    []phases.Run
	budgets []manifest.PhaseBudget
	// bytes is about the size of the rows as JSON, and of what other lists of the state hold of a dispatch.
	bytes   int
	refused int
	unmade  map[[2]string]bool // unmade has the subscriptions and codes of refused host calls
	final   bool               // final says that the last prompt, the one with a full ledger, was compiled
}

func (l *ledger) admit() *phases.Error {
	if l.bytes < maxLedgerBytes {
		return nil
	}
	l.refused++
	return phases.Errorf(phases.CauseBudgetExhausted, "the turn's ledger is full: it has %s bytes of %s; end the turn and begin another one",
		text.Thousands(l.bytes), text.Thousands(maxLedgerBytes))
}

func (l *ledger) notes() []phases.Diagnostic {
	if l.refused == 0 {
		return nil
	}
	return []phases.Diagnostic{{
		Code: string(phases.CauseBudgetExhausted), Severity: phases.SeverityError,
		Message: fmt.Sprintf("%s dispatches and calls were refused: the turn's ledger is full (%s bytes)", text.Thousands(l.refused), text.Thousands(maxLedgerBytes)),
	}}
}

func (l *ledger) addRuns(runs ...phases.Run) {
	l.runs = append(l.runs, runs...)
	for i := range runs {
		l.bytes += runBytes(&runs[i])
	}
}

// addOutcome adds the rows of a dispatch, and counts what else the turn keeps of it.
func (l *ledger) addOutcome(out *phases.Outcome, budget manifest.PhaseBudget) {
	l.addRuns(out.Runs...)
	l.budgets = append(l.budgets, budget)
	l.bytes += 192
	for i := range out.Sources {
		s := &out.Sources[i]
		l.bytes += 384 + len(s.HookID) + len(s.SubscriptionID) + len(s.ContributionID) + len(s.SectionID) + len(s.ContributionHash) + len(s.Plugin) + len(s.CachedFrom)
	}
	for i := range out.Omitted {
		l.bytes += 96 + len(out.Omitted[i].ID) + len(out.Omitted[i].Owner)
	}
	l.addReminders(out.Merged.Reminders)
}

func (l *ledger) addReminders(list []phases.MergedReminder) {
	for i := range list {
		r := &list[i]
		l.bytes += 192 + len(r.Text) + len(r.Owner) + len(r.DedupeKey) + len(r.ContributionID)
		for name, value := range r.Attributes {
			l.bytes += 64 + len(name) + len(value)
		}
	}
}

func runBytes(r *phases.Run) int {
	n := 512 + len(r.Subscription) + len(r.Hook) + len(r.Plugin) + len(r.PluginCode) + len(r.ReasonCode) + len(r.CachedFrom) + len(r.Model)
	for _, id := range r.RewrittenBy {
		n += 8 + len(id)
	}
	for _, hash := range r.Contributions {
		n += 8 + len(hash)
	}
	for i := range r.Cut {
		n += 96 + len(r.Cut[i].ContributionID) + len(r.Cut[i].SectionID)
	}
	return n
}

// Admit refuses a dispatch or a call when the ledger is full: nothing may happen that the record does not show.
func (s *State) Admit() *phases.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.admit()
}

// AdmitRound is Admit for a compilation. One is admitted with a full ledger: its manifest records what was refused.
func (s *State) AdmitRound() *phases.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger.bytes >= maxLedgerBytes && !s.ledger.final {
		s.ledger.final = true
		return nil
	}
	return s.ledger.admit()
}

// LedgerBytes is about the size of the ledger as JSON.
func (s *State) LedgerBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.bytes
}

// AddCall adds a tool call, which the host knows by an id, with the diagnostics of its answer.
func (s *State) AddCall(run phases.Run, call *phases.ToolCall, id string, res *phases.ToolResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.addRuns(run)
	for i := s.recorded.kept.calls; run.Plugin == "" && i < len(s.calls); i++ { // those were judged before it was known that nobody has the tool
		if s.calls[i].Tool == run.Hook {
			s.calls[i].Owner = ""
		}
	}
	arguments, kept := s.argumentsOf(call.Arguments), room{state: s}
	kept.addArguments(&phases.ToolPreCallInput{Arguments: call.Arguments})
	s.addCall(manifest.Call{Phase: phases.PhaseToolCall, CallID: id, Tool: call.Tool, Owner: run.Plugin, Came: arguments, Went: arguments, State: run.State, Code: run.Code},
		kept.texts)
	if res != nil {
		s.notes.add(res.Diagnostics)
	}
}

// AddRuns adds runs that no dispatch has added.
func (s *State) AddRuns(runs ...phases.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.addRuns(runs...)
}

// AddHostCall adds a host call. It returns false for one that was refused like another one
// before it and leaves no row: a plugin cannot fill the ledger with refusals.
func (s *State) AddHostCall(run *phases.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run.Attempts == 0 {
		like := [2]string{run.Subscription, run.Code}
		if s.ledger.unmade[like] {
			return false
		}
		if s.ledger.unmade == nil {
			s.ledger.unmade = map[[2]string]bool{}
		}
		s.ledger.unmade[like] = true
	}
	s.ledger.addRuns(*run)
	return true
}

// Diagnostics returns the turn's diagnostics so far, as many as are kept.
func (s *State) Diagnostics() []phases.Diagnostic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.notes.rows(0), s.ledger.notes()...)
}
