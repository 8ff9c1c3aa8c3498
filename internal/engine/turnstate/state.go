// Package turnstate is what a turn gathers over its phases: policies, contexts, sections and tools of hooks, the
// ledger of runs, diagnostics, remaining budgets, and how the host has gone through the phases. It knows no plugin,
// process or clock: a dispatch reads a [State], runs its hooks and adds the outcome.
//
// Stability: internal.
package turnstate

import (
	"cmp"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// State is the state of one turn. It is safe for concurrent use.
type State struct {
	// gathers is false for a dispatch outside of a turn.
	gathers bool
	// key keys hashes and fingerprints; nil leaves them plain.
	key []byte
	// KeepTexts keeps the arguments and facts of tool calls and the texts of reminders for the records; it is set before anything else.
	KeepTexts bool
	// KeepInputs keeps what it takes to repeat tool calls: their arguments, facts and results, and prompts; it is set before anything else.
	KeepInputs bool

	mu       sync.Mutex
	budget   budget
	policies []phases.PolicyEntry
	contexts []phases.ContextEntry
	// brought is what each phase brought; a repeated dispatch replaces it.
	brought       []brought
	ledger        ledger
	notes         notes
	audits        []manifest.Audit
	calls         []manifest.Call
	arguments     [][]manifest.Text // of the calls, as far as they are kept and not on record, and textBytes their length
	textBytes     int
	requests      []manifest.Request
	host          []manifest.HostEvent
	recorded      recorded
	reminders     []phases.MergedReminder
	handed        []manifest.Reminder // reminders that did not come with a prompt
	reminderTexts map[string]string   // by hash, as far as they are kept; textBytes counts them
	// own are the ids of the host's own sections, sorted.
	own       []string
	round     int
	requested map[string]bool // hidden domains
	offered   bool            // the model was offered request_tools
	conduct   conduct
	onlyLooks bool
	forced    int // how often turn.pre_end made the turn go on
}

type budget struct {
	time   time.Duration // for blocking phases, and chars for the text of hooks
	chars  int
	models map[string]*modelAccount // the accounts of plugins that have asked the model, by name
}

type brought struct {
	phase    phases.Phase
	sections []phases.MergedSection
	chars    int // the length of the sections
	tools    []phases.MergedTool
	sources  []phases.HookSource
	omitted  []phases.Omitted
	warnings []phases.Diagnostic
}

// New begins the state of a turn with the operator's budgets, or the defaults, and the key of hashes.
func New(b config.TurnBudget, key []byte) *State {
	s := Outside(b, key)
	s.gathers, s.conduct.passed = true, map[phases.Phase]bool{}
	return s
}

// Outside is the state for one dispatch or call outside of a turn. It has the budgets of a turn, and gathers only what
// is to be recorded of a dispatch that decided or audited something.
func Outside(b config.TurnBudget, key []byte) *State {
	return &State{key: key, budget: budget{time: cmp.Or(b.Time.D(), config.DefaultTurnTime), chars: cmp.Or(b.Chars, config.DefaultTurnChars)}}
}

// Begin sets what the state begins with.
func (s *State) Begin(policies []phases.PolicyEntry, contexts []phases.ContextEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policies, s.contexts = policies, contexts
}

// Join adds the contexts, with their sources, that a phase brought before the turn. It does nothing once the turn has any.
func (s *State) Join(contexts []phases.ContextEntry, from phases.Phase, sources []phases.HookSource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.contexts) == 0 && s.round == 0 {
		s.contexts = contexts
		s.bring(brought{phase: from, sources: sources})
	}
}

// TimeLeft is what the turn may still spend on blocking phases.
func (s *State) TimeLeft() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.budget.time)
}

// Debit takes the wall time of a blocking phase off the turn's.
func (s *State) Debit(used time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.time -= used
}

// CharsLeft is the text budget for the sections of a phase: the turn's, less what other
// phases have brought. It is negative when nothing is left.
func (s *State) CharsLeft(phase phases.Phase) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.budget.chars
	for i := range s.brought {
		if s.brought[i].phase != phase {
			left -= s.brought[i].chars
		}
	}
	if left <= 0 {
		return -1
	}
	return left
}

// Sets returns what hooks of the next phase may see and what their contributions are merged with.
func (s *State) Sets(in phases.Input) merge.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := merge.State{Policies: slices.Clip(s.policies), Contexts: slices.Clip(s.contexts), HostSections: s.own}
	if tools, ok := in.(*phases.PreToolsInput); ok {
		st.HostTools = tools.ExistingTools
	}
	return st
}

// Policies are the turn's policies so far; they must not be changed.
func (s *State) Policies() []phases.PolicyEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.policies)
}

// Add gathers the outcome of a phase that was dispatched with an input.
func (s *State) Add(from Source, in phases.Input, out *phases.Outcome, merged *merge.Result, phase *plan.Phase) {
	if !s.gathers && out.Decision == nil && len(out.Shadowed)+len(out.Merged.Rewrites)+len(merged.Audits) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A phase that accepts neither may have begun before the last one that does.
	if phase.Row.Accepts(phases.KindPolicy) {
		s.policies = merged.Policies
	}
	if phase.Row.Accepts(phases.KindPromptContext) {
		s.contexts = merged.Contexts
	}
	used := 0
	for i := range out.Merged.Sections {
		used += utf8.RuneCountInString(out.Merged.Sections[i].Content)
	}
	s.bring(brought{out.Phase, out.Merged.Sections, used, out.Merged.Tools, s.lasting(out), slices.Clip(out.Omitted), warnings(out)})
	s.conduct.note(out)
	s.addDecided(&from, in, out)
	s.reminders = append(s.reminders, out.Merged.Reminders...)
	s.notes.add(out.Diagnostics)
	// The budget is the configured one: what was left differs from run to run.
	s.ledger.addOutcome(out, manifest.PhaseBudget{Phase: out.Phase, Budget: manifest.Budget{
		GrantedMS: Millis(phase.Budget), UsedMS: out.Budget.UsedMS, GrantedChars: s.charsFor(phase.Row),
	}})
}

// lasting are the sources of a dispatch, behind those of contexts of earlier dispatches of the phase that are still in
// force.
func (s *State) lasting(out *phases.Outcome) []phases.HookSource {
	var sources []phases.HookSource
	for i := range s.brought {
		if s.brought[i].phase != out.Phase {
			continue
		}
		for _, h := range s.brought[i].sources {
			again := func(o phases.HookSource) bool {
				return o.SubscriptionID == h.SubscriptionID && o.ContributionID == h.ContributionID
			}
			if h.ContributionKind == phases.KindPromptContext && s.inForce(&h) && !slices.ContainsFunc(out.Sources, again) {
				sources = append(sources, h)
			}
		}
	}
	return append(sources, slices.Clip(out.Sources)...)
}

// inForce reports whether a contribution is one of the turn's contexts.
func (s *State) inForce(h *phases.HookSource) bool {
	return slices.ContainsFunc(s.contexts, func(c phases.ContextEntry) bool {
		return c.Owner == h.SubscriptionID && c.ContributionID == h.ContributionID
	})
}

// charsFor is the text that a phase may bring into a turn that has brought none.
func (s *State) charsFor(row phases.Row) int {
	n := 0
	if row.Accepts(phases.KindPromptSection) {
		n += s.budget.chars
	}
	if row.Accepts(phases.KindPromptContext) {
		n += merge.DefaultContextChars
	}
	return n
}

// bring replaces what a phase brought before. Calls of tools each bring their own, in one
// entry as long as no other phase stands between them: there may be thousands.
func (s *State) bring(b brought) {
	s.brought = append(s.brought, b)
	all := s.brought
	s.brought = all[:0]
	for i, o := range all {
		last := len(s.brought) - 1
		switch {
		case o.ofTool() && last >= 0 && s.brought[last].ofTool():
			s.brought[last].sources = append(s.brought[last].sources, o.sources...)
			s.brought[last].omitted = append(s.brought[last].omitted, o.omitted...)
		case o.phase != b.phase || o.ofTool() || i == len(all)-1:
			s.brought = append(s.brought, o)
		}
	}
	clear(all[len(s.brought):])
}

// ofTool reports whether a call of a tool brought it. It has neither sections nor tools.
func (b *brought) ofTool() bool {
	return b.phase == phases.ToolPreCall || b.phase == phases.ToolPostCall
}

// Claim notes the ids of the host's own sections, which no hook may contribute.
func (s *State) Claim(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = slices.Sorted(slices.Values(ids))
}

// Contributed returns what hooks have brought for the prompt.
func (s *State) Contributed() (sections []phases.MergedSection, contexts []phases.ContextEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.brought {
		if s.brought[i].phase != phases.RuntimePreContext { // another program's prompt
			sections = append(sections, s.brought[i].sections...)
		}
	}
	return sections, slices.Clip(s.contexts)
}

// Note adds a diagnostic of the engine's own.
func (s *State) Note(d phases.Diagnostic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.add([]phases.Diagnostic{d})
}

// Remind adds reminders for the next prompt.
func (s *State) Remind(list ...phases.MergedReminder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reminders = append(s.reminders, list...)
	s.ledger.addReminders(list)
}

// Requeue puts back reminders that were taken, before those that came since.
func (s *State) Requeue(list []phases.MergedReminder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reminders = slices.Concat(list, s.reminders)
}

// HandReminders returns the reminders that wait for the next prompt, each once, up to the first that does not fit. They
// are recorded as handed over with the answer to a phase.
func (s *State) HandReminders(with phases.Phase, fits func(r *phases.MergedReminder) bool) []phases.MergedReminder {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.reminders) && fits(&s.reminders[n]) {
		row := s.reminderRow(&s.reminders[n])
		row.With = with
		s.handed = append(s.handed, row)
		n++
	}
	taken := slices.Clone(s.reminders[:n])
	s.reminders = slices.Delete(s.reminders, 0, n)
	return taken
}

// TakeReminders returns the reminders for the next prompt, each once.
func (s *State) TakeReminders() []phases.MergedReminder {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := append([]phases.MergedReminder{}, s.reminders...)
	s.reminders = nil
	return taken
}

// Counted returns the input with the turn's own count; outside of a turn the host's stands.
func (s *State) Counted(in *phases.PreEndInput) *phases.PreEndInput {
	if !s.gathers {
		return in
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := *in
	own.Forced = s.forced
	return &own
}

// Force counts that the turn was made to go on.
func (s *State) Force() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forced++
}

// NextRound counts a compilation and returns its number, from 0.
func (s *State) NextRound() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	return s.round - 1
}

// Millis is a time as records have it.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// answerTokens are reserved for a call that does not name a number: not the whole budget,
// so that a concurrent call finds some.
const answerTokens = 1024

// modelAccount is what one plugin has left of its model budget in one turn. It may be
// overdrawn by what a provider reports.
type modelAccount struct{ calls, tokens int }

// ReserveModel takes one call off a plugin's account, with the output tokens that it may
// use: at most the wanted ones; 0 leaves the number to the account.
func (s *State) ReserveModel(plugin string, b config.ModelBudget, wanted int) (tokens int, refused *phases.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.budget.models[plugin]
	if !ok {
		if s.budget.models == nil {
			s.budget.models = map[string]*modelAccount{}
		}
		a = &modelAccount{cmp.Or(b.Calls, config.DefaultModelCalls), cmp.Or(b.OutputTokens, config.DefaultModelOutputTokens)}
		s.budget.models[plugin] = a
	}
	switch {
	case a.calls <= 0:
		return 0, phases.Errorf(phases.CauseBudgetExhausted, "all calls of the model are used up (limits.model.calls)")
	case a.tokens <= 0:
		return 0, phases.Errorf(phases.CauseBudgetExhausted, "all output tokens of the model are used up (limits.model.output_tokens)")
	}
	tokens = min(cmp.Or(max(wanted, 0), answerTokens), a.tokens)
	a.calls--
	a.tokens -= tokens
	return tokens, nil
}

// SettleModel gives back the reserved tokens that a call did not use, or takes off what it used beyond them.
func (s *State) SettleModel(plugin string, reserved, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.models[plugin].tokens += reserved - used
}
