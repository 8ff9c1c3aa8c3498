package merge

import (
	"cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// Reply is what one hook gave in a dispatch.
type Reply struct {
	Hook    *Hook
	Entries []Entry
	// Dropped is what Admit refused; it becomes rows of Result.Omitted.
	Dropped []Drop
	// CachedFrom names the run that a cached answer came from.
	CachedFrom string
}

// Default limits, in Unicode scalar values: of one section whose subscriptions have smaller budgets or none, and of all
// prompt contexts of a turn together.
const (
	DefaultSectionChars = 20_000
	DefaultContextChars = 12_000
)

// Limits bound what is kept of a dispatch. Zero fields are the defaults; a negative field leaves room for nothing.
type Limits struct {
	// Sections is how many (16), SectionChars how long one may be (20,000, or as much as the budgets of its
	// subscriptions together) and TotalChars how long all of a phase may be (64,000).
	Sections, SectionChars, TotalChars int
	// Contexts is how many entries (16), ContextChars how many characters (12,000) all prompt contexts of a turn may
	// have.
	Contexts, ContextChars int
	// CountTokens counts for token budgets; nil does not enforce them.
	CountTokens func(string) int
}

func (l Limits) withDefaults() Limits {
	l.Sections = max(0, cmp.Or(l.Sections, 16))
	l.SectionChars = max(0, cmp.Or(l.SectionChars, DefaultSectionChars))
	l.TotalChars = max(0, cmp.Or(l.TotalChars, 64_000))
	l.Contexts = max(0, cmp.Or(l.Contexts, 16))
	l.ContextChars = max(0, cmp.Or(l.ContextChars, DefaultContextChars))
	return l
}

// State is what the turn and the host have already. Merge only reads it.
type State struct {
	Policies []phases.PolicyEntry
	Contexts []phases.ContextEntry
	// HostTools and HostSections are names that belong to the host; HostSections are sorted.
	HostTools    []string
	HostSections []string
}

// Part is the result of one reply, for the ledger.
type Part struct {
	// Kept are the hashes of what was kept, or for a shadow hook would have been. Never nil.
	Kept []string
	// Cuts are the texts that were kept in part.
	Cuts []phases.Cut
}

// Loss is a slot that a subscription lost to another one.
type Loss struct {
	Reply        int // index of the loser's reply
	Subscription string
	Cause        phases.Cause
	Slot         string
}

// Owned is a contribution that is passed on unchanged.
type Owned[T phases.Contribution] struct {
	Hook  *Hook
	Value T
	Hash  string
}

// Result is a merged dispatch.
type Result struct {
	// Contributions is what was kept, in plan order, as it was sent.
	Contributions []phases.Applied
	// Shadowed is what shadow hooks contributed, in plan order.
	Shadowed []phases.Applied
	// Decision is nil when no hook decided.
	Decision *phases.Decided
	// Merged is the result of this dispatch: policies sorted by domain and key, contexts and sections by rank, tools
	// by name, rewrites and reminders in plan order. Sections and tools are owned by the plugin, all else by the
	// subscription.
	Merged phases.Merged
	// Policies and Contexts are the turn's whole sets after this dispatch, for the next State. They may share memory
	// with the State.
	Policies []phases.PolicyEntry
	Contexts []phases.ContextEntry
	// Diagnostics are in plan order, then by kind, without those of Admit.
	Diagnostics []phases.Diagnostic
	Omitted     []phases.Omitted
	// Sources has one entry per kept contribution, in plan order.
	Sources []phases.HookSource
	// Parts has one entry per reply.
	Parts  []Part
	Losses []Loss
	Audits []Owned[*phases.Audit]
	Jobs   []Owned[*phases.BackgroundJob]
}

// Reasons in Omitted that are not causes.
const (
	ReasonBudget    = "budget"    // a limit left no room for any of it
	ReasonBlank     = "blank"     // the text holds nothing visible
	ReasonOutranked = "outranked" // a policy whose key holds a stronger value
	ReasonReplaced  = "replaced"  // a context that a later one of the same id replaced
	ReasonDuplicate = "duplicate" // a reminder that was delivered before
)
