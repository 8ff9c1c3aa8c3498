package compiler

import (
	"cmp"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Version is the compiler_version of manifests. It rises when the same input
// would give another prompt.
const Version = "1"

// Boundary stands between the stable and the dynamic part.
const Boundary = text.Boundary

// Order is how the dynamic sections are sorted.
type Order string

// The orders. The empty one counts as OrderReference.
const (
	// OrderReference is the order of the table.
	OrderReference Order = "reference"
	// OrderCache puts what changes slowly first, so that a section that differs
	// in each turn does not cost the provider's cache of the text behind it.
	OrderCache Order = "cache"
)

// Pace says how soon a dynamic section's text is likely to change.
type Pace string

// The paces, slowest first. The empty one counts as PaceTurn.
const (
	PaceSession Pace = "session"
	PaceTurn    Pace = "turn"
	PaceCall    Pace = "call"
)

// Input is everything that a compilation depends on. The zero value compiles the
// built-in texts of the full profile. Compile only reads it.
type Input struct {
	// Profile is how much is compiled; empty counts as full.
	Profile phases.Profile
	// Order is how the dynamic part is sorted.
	Order Order
	// Host is what the embedding program and the files in front of it bring.
	Host HostTexts
	// Sections are the sections of hooks: merged, cut, in any order.
	Sections []phases.MergedSection
	// Contexts is the turn's context set, in rank order. Those that are not to
	// be rendered are passed over.
	Contexts []phases.ContextEntry
	// Tools are the tools of plugins, in any order.
	Tools []phases.MergedTool
	// ToolCalling says that the model can call tools in this turn.
	ToolCalling bool
	// Facts are the runtime facts at the end of the prompt.
	Facts Facts
	// Custom are sections of the host's own.
	Custom []CustomSection
	// Limits bound the texts that are cut here.
	Limits Limits
	// Previous are the sections of the session's previous manifest; nil if there
	// is none.
	Previous []manifest.Section
	// MoveUnstable moves a section that was declared stable and changed within
	// the session to the dynamic part, from then on.
	MoveUnstable bool
	// CountTokens counts tokens, and Tokenizer names it. Nil leaves tokens out.
	// It must be a pure function.
	CountTokens func(string) int
	Tokenizer   string
	// FingerprintKey keys all fingerprints; nil leaves them plain.
	FingerprintKey []byte
}

// HostTexts are texts for rows of the table. An empty one is not there; one of
// blanks only is recorded as left out.
type HostTexts struct {
	// Identity and Safety replace the built-in texts.
	Identity, Safety string
	// SoulCore, IdentityCore and UserPersona are the texts of the runtime home's
	// SOUL.md, IDENTITY.md and USER.md.
	SoulCore, IdentityCore, UserPersona string
	// ToolRecovery includes the tool recovery policy; ToolRecoveryPolicy, which
	// replaces the built-in text, includes it too.
	ToolRecovery       bool
	ToolRecoveryPolicy string
	// TaskTools says that tools for tasks are there, which includes the policy on
	// orchestrating them; TaskOrchestration, which replaces the built-in text,
	// includes it too.
	TaskTools         bool
	TaskOrchestration string
	// RecoveryContinuation tells how to go on with an answer that broke off.
	RecoveryContinuation string
	// RetryInstruction tells what to do differently after a failure.
	RetryInstruction string
	// DynamicContext stands behind the contexts of hooks.
	DynamicContext string
}

// Facts are one-line values, already formatted. Empty ones are left away.
type Facts struct {
	Date, TimeZone, OS string
	// Time is the time of day. It makes every prompt differ, so give it only if
	// that is wanted.
	Time string
}

// CustomSection is a section of the host's own.
type CustomSection struct {
	// SectionID must not be an id of the table or of a hook's section.
	SectionID string
	// Title is the heading; empty means the id.
	Title string
	// Stability and Placement count as dynamic and system where empty.
	Stability phases.Stability
	Placement phases.Placement
	// Pace matters in the dynamic part under OrderCache; empty means the pace of
	// the section that it was put beside.
	Pace       Pace
	Text       string
	SourceRefs []phases.SourceRef
	// Before or After is the id of the section that it stands beside: one of the
	// table, whether or not that has a text, of a hook or of another custom
	// section. With neither, or when that id is not there, it stands behind the
	// hook sections of its stability. The stable part always comes first.
	Before, After string

	_ struct{}
}

// Limits bound texts in Unicode scalar values, marker included and heading
// not. Zero fields are the defaults. Room is given out in the order of the table.
type Limits struct {
	// SectionChars (20,000) bounds each text of the host, and TotalChars (64,000)
	// all of them.
	SectionChars, TotalChars int
	// FileChars (20,000) bounds each text of the runtime home, and FilesChars
	// (150,000) all of them.
	FileChars, FilesChars int
}

func (l Limits) withDefaults() Limits {
	l.SectionChars = cmp.Or(max(l.SectionChars, 0), 20_000)
	l.TotalChars = cmp.Or(max(l.TotalChars, 0), 64_000)
	l.FileChars = cmp.Or(max(l.FileChars, 0), 20_000)
	l.FilesChars = cmp.Or(max(l.FilesChars, 0), 150_000)
	return l
}
