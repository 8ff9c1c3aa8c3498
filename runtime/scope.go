package runtime

import (
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// scope is what a turn gathers over its phases, and what is left of its budgets.
// Tool phases of one turn run at the same time, so it has a lock.
type scope struct {
	// gathers is false for a dispatch outside any turn: there is nobody to gather
	// for.
	gathers bool

	mu       sync.Mutex
	left     time.Duration
	chars    int
	policies []phases.PolicyEntry
	contexts []phases.ContextEntry
	// brought is what each phase brought; a phase that is dispatched again brings
	// it anew.
	brought   []brought
	ledger    ledger
	notes     notes
	reminders []phases.MergedReminder
	// audits are those of the phases before the prompt; so many of them are in a
	// manifest or kept otherwise.
	audits  []manifest.Audit
	audited int
	// auditsOver are those beyond the bound that were told, by auditNotes.
	auditsOver int
	auditNotes []phases.Diagnostic
	// models are the model budgets that plugins have begun to use, by name.
	models map[string]*modelAccount
	// own are the ids of the host's own sections.
	own []string
	// round counts the compilations of the turn.
	round int
	// asked are the hidden domains that were asked for. requestable says that the
	// model was offered request_tools.
	asked       map[string]bool
	requestable bool
	conduct     conduct
}

// brought is what one phase put into the prompt.
type brought struct {
	phase    phases.Phase
	sections []phases.MergedSection
	// chars is the length of the sections.
	chars   int
	tools   []phases.MergedTool
	sources []phases.HookSource
	leftOut []phases.LeftOut
}

// newScope has the operator's budgets of a turn, or the defaults.
func newScope(b config.TurnBudget, gathers bool) *scope {
	s := &scope{gathers: gathers, left: b.Time.D(), chars: b.Chars}
	if s.left == 0 {
		s.left = config.DefaultTurnTime
	}
	if s.chars == 0 {
		s.chars = config.DefaultTurnChars
	}
	return s
}

// timeLeft is what the turn may still spend on blocking phases.
func (s *scope) timeLeft() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.left)
}

// debit takes the wall time of a blocking phase off the turn's.
func (s *scope) debit(used time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left -= used
}

// charsLeft is the room for the sections of the given phase: what the turn has,
// less what other phases have brought. Negative when there is none.
func (s *scope) charsLeft(phase phases.Phase) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.chars
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

// charsOf is the length of sections in Unicode scalar values.
func charsOf(sections []phases.MergedSection) int {
	n := 0
	for i := range sections {
		n += utf8.RuneCountInString(sections[i].Content)
	}
	return n
}

// sets returns what hooks of the next phase may see and what their
// contributions are merged with.
func (s *scope) sets(in phases.Input) merge.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := merge.State{Policies: slices.Clip(s.policies), Contexts: slices.Clip(s.contexts), HostSections: s.own}
	if tools, ok := in.(*phases.PreToolsInput); ok {
		st.HostTools = tools.ExistingTools
	}
	return st
}

// add gathers the outcome of a phase. The budget is the configured one: what was
// left of the turn differs from run to run.
func (s *scope) add(out *phases.Outcome, merged *merge.Result, phase *plan.Phase) {
	if !s.gathers {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A phase that takes neither may have begun before the last one that does.
	if phase.Row.Accepts(phases.KindPolicy) {
		s.policies = merged.Policies
	}
	if phase.Row.Accepts(phases.KindPromptContext) {
		s.contexts = merged.Contexts
	}
	used := charsOf(out.Merged.Sections)
	s.bring(brought{out.Phase, out.Merged.Sections, used, out.Merged.Tools, out.Sources, out.LeftOut})
	s.conduct.note(out)
	s.reminders = append(s.reminders, out.Merged.Reminders...)
	s.notes.add(out.Diagnostics)
	for i := range out.Merged.Contexts {
		used += utf8.RuneCountInString(out.Merged.Contexts[i].Content)
	}
	s.ledger.addOutcome(out, manifest.PhaseBudget{
		Phase: out.Phase, Budget: manifest.Budget{
			GrantedMS: millis(phase.Budget), UsedMS: out.Budget.UsedMS, GrantedChars: s.charsFor(phase.Row), UsedChars: used,
		},
	})
}

// charsFor is the text that a phase may bring into a turn that has brought none.
func (s *scope) charsFor(row phases.Row) int {
	n := 0
	if row.Accepts(phases.KindPromptSection) {
		n += s.chars
	}
	if row.Accepts(phases.KindPromptContext) {
		n += merge.DefaultContextChars
	}
	return n
}

// bring puts what a phase brought in the place of what it brought before. Calls
// of tools each bring their own.
func (s *scope) bring(b brought) {
	if b.phase != phases.ToolPreCall && b.phase != phases.ToolPostCall {
		s.brought = slices.DeleteFunc(s.brought, func(o brought) bool { return o.phase == b.phase })
	}
	s.brought = append(s.brought, b)
}

// claim notes the ids of the host's own sections, which no hook may contribute.
func (s *scope) claim(custom []compiler.CustomSection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = make([]string, len(custom))
	for i := range custom {
		s.own[i] = custom[i].SectionID
	}
}

// tools are the tools that plugins have brought into the turn, hidden ones
// included.
func (s *scope) tools() []phases.MergedTool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allTools()
}

// allTools is tools for those who hold the lock.
func (s *scope) allTools() []phases.MergedTool {
	var all []phases.MergedTool
	for i := range s.brought {
		all = append(all, s.brought[i].tools...)
	}
	return all
}

// takeReminders returns the reminders that wait for the next prompt. Each is
// given out once.
func (s *scope) takeReminders() []phases.MergedReminder {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := append([]phases.MergedReminder{}, s.reminders...)
	s.reminders = nil
	return taken
}

// nextRound counts a compilation and returns its number, from 0.
func (s *scope) nextRound() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	return s.round - 1
}
