package compiler

import (
	"cmp"
	"time"

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
	// Files are the files of the runtime home that were read or looked for, as
	// rows of the manifest. Their Chars are not read.
	Files []manifest.File
	// Sections are the sections of hooks: merged, cut, in any order.
	Sections []phases.MergedSection
	// Contexts is the turn's context set, in rank order. Those that are not to
	// be rendered are passed over.
	Contexts []phases.ContextEntry
	// Tools are the tools of plugins, in any order.
	Tools []phases.MergedTool
	// RequestedDomains are the hidden domains that were asked for: their tools are
	// offered like any other.
	RequestedDomains []string
	// HostTools are the names of the host's own tools, which the model is offered
	// beside those that are here.
	HostTools []string
	// ToolCalling says that the model can call tools in this turn.
	ToolCalling bool
	// Facts are the runtime facts at the end of the prompt.
	Facts Facts
	// Custom are sections of the host's own.
	Custom []CustomSection
	// Limits bound the texts that are cut here.
	Limits Limits
	// Previous is the thread's previous prompt; nil if none is known.
	Previous *Previous
	// CacheRules are those of the model that the prompt is for; nil where they are
	// not known, and then nothing is predicted.
	CacheRules *CacheRules
	// Provider and Model say for whom the prompt is. They are only recorded, and
	// compared with those of the previous prompt: models share no cache.
	Provider, Model string
	// KeepTexts asks for [Output.Texts].
	KeepTexts bool
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

// Previous is what is known of the thread's previous prompt. [PreviousOf] takes
// it from a manifest.
type Previous struct {
	// Sections are its sections, in order.
	Sections []manifest.Section
	// Tools is its fingerprint_tools.
	Tools string
	// Plan is where it asked the provider to cache.
	Plan manifest.CachePlan
	// Provider and Model say for whom it was; where they are empty, that is not
	// known, and they count as the same.
	Provider, Model string
	// Age is how long ago it was compiled; below 0 counts as 0.
	Age time.Duration
	// SameSession says that it belongs to the same session, in which what is
	// declared stable should not change.
	SameSession bool
}

// PreviousOf returns what a manifest says of its prompt, as seen at a later time
// from a session; nil for one that was never sent. It shares lists with the manifest.
func PreviousOf(m *manifest.Manifest, now time.Time, session string) *Previous {
	if m == nil || !m.Sent() {
		return nil
	}
	return &Previous{
		Sections: m.Sections, Tools: m.FingerprintTools, Plan: m.Cache.Plan, Provider: m.Cache.Provider, Model: m.Cache.Model,
		Age: max(0, now.Sub(m.CreatedAt)), SameSession: session != "" && m.SessionID == session,
	}
}

// CacheRules are facts about a model's prompt cache, as plain numbers.
type CacheRules struct {
	// MinimumTokens is the shortest prefix that is cached; 0 is any.
	MinimumTokens int
	// Explicit says that prefixes are cached where the plan asks for it, and
	// nowhere else. Otherwise the provider looks for the longest one by itself.
	Explicit bool
	// Lifetime is how long a prefix is kept that nobody asks for again; 0 where
	// that is not known, and then age does not count.
	Lifetime time.Duration
	// Step is by how many tokens an implicit prefix grows; 0 counts as 1.
	Step int
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
