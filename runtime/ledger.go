package runtime

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// maxLedgerBytes bounds what a turn keeps of its dispatches and calls: in memory until
// it ends, and in each of its manifests. A turn with a full ledger refuses more of them:
// nothing may happen that the record does not show.
const maxLedgerBytes = 4 << 20

// ledger is the record of a turn's dispatches and calls. It only grows.
type ledger struct {
	runs    []phases.Run
	budgets []manifest.PhaseBudget
	// bytes is about what the rows take as JSON, with those that other lists of the
	// scope have of a dispatch.
	bytes int
	// refused counts what was refused because the ledger was full.
	refused int
	// final says that a prompt was compiled with the full ledger, which is the last one.
	final bool
}

// admit refuses a dispatch or a call where the ledger is full. The caller holds the
// scope's lock.
func (l *ledger) admit() *phases.Error {
	if l.bytes < maxLedgerBytes {
		return nil
	}
	l.refused++
	return phases.Errorf(phases.CauseBudgetExhausted, "the turn's ledger is full: it has %s bytes of %s; end the turn and begin another one",
		text.Thousands(l.bytes), text.Thousands(maxLedgerBytes))
}

// admitRound is admit for a compilation. One is let through with a full ledger: its
// manifest records how the turn went and what was refused.
func (l *ledger) admitRound() *phases.Error {
	if l.bytes >= maxLedgerBytes && !l.final {
		l.final = true
		return nil
	}
	return l.admit()
}

// notes says what was refused.
func (l *ledger) notes() []phases.Diagnostic {
	if l.refused == 0 {
		return nil
	}
	return []phases.Diagnostic{{
		Code: string(phases.CauseBudgetExhausted), Severity: phases.SeverityError,
		Message: fmt.Sprintf("%s dispatches and calls were refused: the turn's ledger is full (%s bytes)", text.Thousands(l.refused), text.Thousands(maxLedgerBytes)),
	}}
}

// addRuns takes rows.
func (l *ledger) addRuns(runs ...phases.Run) {
	l.runs = append(l.runs, runs...)
	for i := range runs {
		l.bytes += runBytes(&runs[i])
	}
}

// addOutcome takes the rows of a dispatch, and counts what else the turn keeps of it.
func (l *ledger) addOutcome(out *phases.Outcome, budget manifest.PhaseBudget) {
	l.addRuns(out.Runs...)
	l.budgets = append(l.budgets, budget)
	l.bytes += 192
	for i := range out.Sources {
		s := &out.Sources[i]
		l.bytes += 384 + len(s.HookID) + len(s.SubscriptionID) + len(s.ContributionID) + len(s.SectionID) + len(s.ContributionHash) + len(s.Plugin) + len(s.CachedFrom)
	}
	for i := range out.LeftOut {
		l.bytes += 96 + len(out.LeftOut[i].ID) + len(out.LeftOut[i].Owner)
	}
	for i := range out.Merged.Reminders {
		r := &out.Merged.Reminders[i]
		l.bytes += 192 + len(r.Text) + len(r.Owner) + len(r.DedupeKey) + len(r.ContributionID)
		for name, value := range r.Attributes {
			l.bytes += 64 + len(name) + len(value)
		}
	}
}

// runBytes is about the size of a row as JSON.
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

// admit is that of the turn's ledger.
func (s *scope) admit() *phases.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.admit()
}

// admitRound is that of the turn's ledger.
func (s *scope) admitRound() *phases.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.admitRound()
}

// LedgerBytes returns about how much the turn's ledger takes, up to 4 MiB: the
// manifests that its next compilations make have as many bytes more. A turn whose ledger
// is full refuses dispatches and calls of tools ([phases.CauseBudgetExhausted]), and
// compiles once more.
func (t *Turn) LedgerBytes() int {
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	return t.scope.ledger.bytes
}
