package runtime

import (
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// scope is what a turn gathers over its phases. Tool phases of one turn run at
// the same time, so it has a lock. The zero value is the scope of a dispatch
// outside any turn: the default budgets and nothing gathered.
type scope struct {
	mu       sync.Mutex
	started  bool
	left     time.Duration
	chars    int
	policies []phases.PolicyEntry
	contexts []phases.ContextEntry
	runs     []phases.Run
	sources  []phases.HookSource
	leftOut  []phases.LeftOut
	notes    []phases.Diagnostic
	budgets  []manifest.PhaseBudget
	sections []phases.MergedSection
	tools    []phases.MergedTool
	reminder []phases.MergedReminder
	// own are the ids of the host's own sections.
	own []string
}

// newScope begins the scope of a turn with the operator's budgets.
func newScope(b config.TurnBudget) *scope {
	s := &scope{started: true, left: b.Time.D(), chars: b.Chars}
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
	if !s.started {
		return config.DefaultTurnTime
	}
	return max(0, s.left)
}

// debit takes the wall time of a blocking phase off the turn's.
func (s *scope) debit(used time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left -= used
}

// charsLeft is the room for all sections together; 0 is the default.
func (s *scope) charsLeft() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chars
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

// add gathers the outcome of a phase; outside a turn there is nobody to gather
// for. The budget is the configured one: what was left of the turn differs from
// run to run.
func (s *scope) add(out *phases.Outcome, merged *merge.Result, budget time.Duration) {
	if !s.started {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Only what this phase has changed: tool phases run beside others.
	if len(out.Merged.Policies) > 0 {
		s.policies = merged.Policies
	}
	if len(out.Merged.Contexts) > 0 {
		s.contexts = merged.Contexts
	}
	s.sections = append(s.sections, out.Merged.Sections...)
	s.tools = append(s.tools, out.Merged.Tools...)
	s.reminder = append(s.reminder, out.Merged.Reminders...)
	s.runs = append(s.runs, out.Runs...)
	s.sources = append(s.sources, out.Sources...)
	s.leftOut = append(s.leftOut, out.LeftOut...)
	s.notes = append(s.notes, out.Diagnostics...)
	used := 0
	for i := range out.Merged.Sections {
		used += utf8.RuneCountInString(out.Merged.Sections[i].Content)
	}
	for i := range out.Merged.Contexts {
		used += utf8.RuneCountInString(out.Merged.Contexts[i].Content)
	}
	s.budgets = append(s.budgets, manifest.PhaseBudget{
		Phase: out.Phase, Budget: manifest.Budget{GrantedMS: millis(budget), UsedMS: out.Budget.UsedMS, UsedChars: used},
	})
}

// claim notes the ids of the host's own sections, which no hook may contribute.
func (s *scope) claim(custom []compiler.CustomSection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = s.own[:0:0]
	for i := range custom {
		s.own = append(s.own, custom[i].SectionID)
	}
}

// toolOwner returns the plugin that brought a tool in.
func (s *scope) toolOwner(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tools {
		if t.Name == name {
			return t.Owner, true
		}
	}
	return "", false
}
