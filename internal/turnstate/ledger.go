package turnstate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/sections"
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
	for i := range out.Merged.Reminders {
		r := &out.Merged.Reminders[i]
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

// AddCall adds a tool call with the diagnostics of its answer.
func (s *State) AddCall(run phases.Run, res *phases.ToolResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.addRuns(run)
	if res != nil {
		s.notes.add(res.Diagnostics)
	}
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
	return append(s.notes.rows(), s.ledger.notes()...)
}

// MaxAudits bounds the audits of one manifest.
const MaxAudits = 256

type audits struct {
	list []manifest.Audit
	// kept is how many of them are in a manifest or kept otherwise, lost how many were
	// over the bound; notes report those.
	kept, lost int
	notes      []phases.Diagnostic
}

// AddAudits adds the audits of a phase for the turn's manifest. It returns false if they
// are not in one: the phase comes after the prompt, or there is no turn.
func (s *State) AddAudits(phase phases.Phase, rows []manifest.Audit) bool {
	before := []phases.Phase{phases.PrePolicy, phases.PrePromptContext, phases.PostPreflight, phases.PreTools, phases.PrePromptCompile, phases.PostPromptCompile}
	if !s.gathers || !slices.Contains(before, phase) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audits.list = append(s.audits.list, rows...)
	for i := range rows {
		s.ledger.bytes += 256 + len(rows[i].Details)
	}
	return true
}

// RestAudits returns the audits that are in no manifest, once.
func (s *State) RestAudits() []manifest.Audit {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.audits.list[s.audits.kept:]
	s.audits.kept = len(s.audits.list)
	return rest
}

// Record writes what the turn has gathered into a manifest that has the compiler's rows.
// lost is called for audits beyond the bound, once for each.
func (s *State) Record(m *manifest.Manifest, b config.TurnBudget, lost func(n int) []phases.Diagnostic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var before []phases.Omitted
	m.HookSources = nil
	for i := range s.brought {
		m.HookSources = append(m.HookSources, s.brought[i].sources...)
		before = append(before, s.brought[i].omitted...)
	}
	m.Omitted = append(before, m.Omitted...)
	s.placeContexts(m)
	m.Runs = slices.Clone(s.ledger.runs)
	for i := range m.Runs {
		m.Runs[i].PluginCode = text.Sanitize(m.Runs[i].PluginCode, MaxWordChars)
		m.Runs[i].ReasonCode = text.Sanitize(m.Runs[i].ReasonCode, MaxWordChars)
	}
	a := &s.audits
	n := min(len(a.list), MaxAudits)
	if over := len(a.list) - n; over > a.lost {
		a.notes = append(a.notes, lost(over-a.lost)...)
		a.lost = over
	}
	m.Audits, a.kept = slices.Clone(a.list[:n]), len(a.list)
	m.Policies = s.policies
	m.Budgets = s.budgetRows(b)
	m.Diagnose(a.notes)
	m.Diagnose(s.notes.rows())
	m.Diagnose(s.ledger.notes())
}

// placeContexts names the section of rendered contexts in their sources, which merging
// cannot know. The caller holds the lock.
func (s *State) placeContexts(m *manifest.Manifest) {
	if !slices.ContainsFunc(m.Sections, func(row manifest.Section) bool { return row.SectionID == sections.DynamicContext }) {
		return
	}
	for i := range m.HookSources {
		h := &m.HookSources[i]
		if h.ContributionKind == phases.KindPromptContext && slices.ContainsFunc(s.contexts, func(c phases.ContextEntry) bool {
			return c.Render && c.Owner == h.SubscriptionID && c.ContributionID == h.ContributionID
		}) {
			h.SectionID = sections.DynamicContext
		}
	}
}

// budgetRows needs the lock.
func (s *State) budgetRows(b config.TurnBudget) manifest.Budgets {
	granted := cmp.Or(b.Time.D(), config.DefaultTurnTime)
	rows := manifest.Budgets{
		Turn:   manifest.Budget{GrantedMS: millis(granted), UsedMS: millis(granted - s.budget.time), GrantedChars: s.budget.chars},
		Phases: slices.Clone(s.ledger.budgets),
	}
	for i := range s.brought {
		rows.Turn.UsedChars += s.brought[i].chars
	}
	return rows
}
