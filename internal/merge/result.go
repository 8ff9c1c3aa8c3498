package merge

import (
	"cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// Reply is what one hook gave in a dispatch.
type Reply struct {
	Hook    *Hook
	Entries []Entry
	// Dropped is what Admit refused; it becomes rows of Result.LeftOut.
	Dropped []Drop
	// CachedFrom names the run that a cached answer came from.
	CachedFrom string
}

// DefaultSectionChars is how long one section may be, in Unicode scalar values,
// whatever else allows more.
const DefaultSectionChars = 20_000

// DefaultContextChars is how long all prompt contexts of a turn may be together.
const DefaultContextChars = 12_000

// Limits bound what is kept of a dispatch. Zero fields are the defaults; a
// negative field leaves room for nothing.
type Limits struct {
	// Sections is how many (16), SectionChars how long one may be (20,000) and
	// TotalChars how long all of a phase may be (64,000).
	Sections, SectionChars, TotalChars int
	// Contexts is how many entries (16) and ContextChars how many characters
	// (12,000) all prompt contexts of a turn may come to.
	Contexts, ContextChars int
	// CountTokens counts for token budgets of subscriptions. Nil: such budgets
	// are not enforced.
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
	// HostTools and HostSections are names that belong to the host. The rows of
	// the compiler's table need not be among the sections: [Admit] guards them.
	HostTools    []string
	HostSections []string
}

// Part is what became of one reply, for the ledger.
type Part struct {
	// Kept are the hashes of what was kept, in order; of a shadow hook, of what
	// would have been applied. Never nil.
	Kept []string
	// Cuts are the texts that were kept in part, whoever cut them; what was left
	// out whole is in Result.LeftOut.
	Cuts []phases.Cut
}

// Loss is a slot that a subscription lost to another one. Its failure policy
// for the cause applies.
type Loss struct {
	// Reply is the index of the loser's reply.
	Reply        int
	Subscription string
	Cause        phases.Cause
	Slot         string
}

// Owned is a contribution that is handed on as it is.
type Owned[T phases.Contribution] struct {
	Hook  *Hook
	Value T
	Hash  string
}

// Result is a merged dispatch.
type Result struct {
	// Contributions is what was kept, in plan order, as it was sent: Merged shows
	// what was made of it.
	Contributions []phases.Applied
	// Shadowed is what shadow hooks have contributed, in plan order.
	Shadowed []phases.Applied
	// Decision is nil when nobody decided.
	Decision *phases.Decided
	// Merged is what this dispatch comes to. Policies are sorted by domain and
	// key, contexts and sections by rank, tools by name, rewrites and reminders
	// stand in plan order. The owner of a section or tool is the plugin, of
	// anything else the subscription.
	Merged phases.Merged
	// Policies and Contexts are the turn's whole sets after this dispatch, to be
	// the next State: what was there, with what Merged adds or replaces. They
	// may share memory with the State.
	Policies []phases.PolicyEntry
	Contexts []phases.ContextEntry
	// Diagnostics are in plan order, then by kind, and include the plugins' own
	// manifest_diagnostic contributions. Those of Admit are not repeated.
	Diagnostics []phases.Diagnostic
	LeftOut     []phases.LeftOut
	// Sources has one entry per kept contribution, in plan order.
	Sources []phases.HookSource
	// Parts has one entry per reply, in the order of the replies.
	Parts  []Part
	Losses []Loss
	Audits []Owned[*phases.Audit]
	Jobs   []Owned[*phases.BackgroundJob]
}

// Reasons in LeftOut that are not causes.
const (
	ReasonBudget = "budget"
	ReasonBlank  = "blank"
	// ReasonOutranked is a policy whose key holds a stronger value.
	ReasonOutranked = "outranked"
	// ReasonReplaced is a context that a later one of the same id replaced.
	ReasonReplaced = "replaced"
	// ReasonDuplicate is a reminder whose dedupe key came before.
	ReasonDuplicate = "duplicate"
)
