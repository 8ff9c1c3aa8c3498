package compiler

import (
	"cmp"
	"time"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Version is the compiler_version of manifests. It rises when the same input would give another prompt.
const Version = "1"

// Boundary stands between the stable and the dynamic part.
const Boundary = text.Boundary

// Order is how the dynamic sections are sorted.
type Order string

// The orders. The empty one counts as OrderReference.
const (
	OrderReference Order = "reference"
	// OrderCache puts sections that change slowly first, for the provider's cache.
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

// Input is everything that a compilation depends on; it is only read. The zero value
// compiles the built-in texts of the full profile.
type Input struct {
	Profile phases.Profile
	Order   Order
	Host    HostTexts
	// Files are the rows of the persona files that were read or looked for. Their Chars are ignored.
	Files []manifest.File
	// Sections and Contexts are those of hooks, for [Compile]; see [Prepared.Render].
	Sections []phases.MergedSection
	Contexts []phases.ContextEntry
	// Tools are the tools of plugins, in any order.
	Tools []phases.MergedTool
	// RequestedDomains are the hidden domains whose tools are offered like any other.
	RequestedDomains []string
	// ExistingTools are the names of the host's own tools.
	ExistingTools []string
	// HooksOnly compiles only what hooks bring, for a host that is given texts beside a prompt of its own. The rest, and
	// without ToolCalling all tools, are omitted with the reason [ReasonHostCannot].
	HooksOnly bool
	// ToolCalling says that the model can call tools in this turn.
	ToolCalling bool
	// Facts are the runtime facts at the end of the prompt.
	Facts Facts
	// Custom are sections of the host's own, at most 256.
	Custom []CustomSection
	Limits Limits
	// Previous is the thread's previous prompt; nil if it is unknown.
	Previous *Previous
	// CacheRules are the model's; nil predicts nothing.
	CacheRules *CacheRules
	// Provider and Model are recorded, and compared with the previous prompt's: models share no cache.
	Provider, Model string
	// KeepTexts asks for [Output.Texts].
	KeepTexts bool
	// MoveUnstable moves a section that was declared stable and changed within the session to the dynamic part.
	MoveUnstable bool
	// CountTokens must be a pure function, and Tokenizer names it. Nil omits tokens.
	CountTokens func(string) int
	Tokenizer   string
	// FingerprintKey keys all fingerprints; nil leaves them plain.
	FingerprintKey []byte
}

// Previous describes the thread's previous prompt; [PreviousOf] takes it from a manifest.
type Previous struct {
	manifest.Outline
	// Age is how long ago it was compiled.
	Age time.Duration
	// SameSession says that it belongs to the same session, in which sections that are
	// declared stable should not change.
	SameSession bool
}

// PreviousOf describes a prompt as seen later from a session; nil for one that was never sent.
func PreviousOf(o *manifest.Outline, now time.Time, session string) *Previous {
	if o == nil || !o.Sent {
		return nil
	}
	return &Previous{Outline: *o, Age: max(0, now.Sub(o.CreatedAt)), SameSession: session != "" && o.SessionID == session}
}

// CacheRules are facts about a model's prompt cache, as plain numbers.
type CacheRules struct {
	// MinimumTokens is the shortest prefix that is cached; 0 is any.
	MinimumTokens int
	// Explicit says that prefixes are cached only where the plan asks for it.
	Explicit bool
	// Lifetime is how long an unused prefix is kept; 0 if unknown, which ignores age.
	Lifetime time.Duration
	// Step is by how many tokens an implicit prefix grows; 0 counts as 1.
	Step int
}

// HostTexts are texts for rows of the table. An empty one is absent; a blank one is recorded as omitted.
type HostTexts struct {
	// Identity and Safety replace the built-in texts.
	Identity, Safety string
	// SoulCore, IdentityCore and UserPersona are the texts of the persona files.
	SoulCore, IdentityCore, UserPersona string
	// ToolRecovery includes the tool recovery policy; ToolRecoveryPolicy replaces its text.
	ToolRecovery       bool
	ToolRecoveryPolicy string
	// TaskTools includes the policy on orchestrating tasks; TaskOrchestration replaces its text.
	TaskTools         bool
	TaskOrchestration string
	// RecoveryContinuation says how to continue an answer that broke off.
	RecoveryContinuation string
	// RetryInstruction says what to do differently after a failure.
	RetryInstruction string
	// DynamicContext follows the contexts of hooks.
	DynamicContext string
}

// Facts are one-line values, already formatted. Empty ones are omitted.
type Facts struct {
	Date, TimeZone, OS string
	// Time is the time of day; it makes every prompt differ.
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
	// Pace matters in the dynamic part under OrderCache; empty is the neighbour's pace.
	Pace       Pace
	Text       string
	SourceRefs []phases.SourceRef
	// Before or After is the id of the section that it stands beside: of the table, a hook or another custom
	// section. Without one, or if that is missing, it follows the hook sections of its stability.
	Before, After string

	_ struct{}
}

// Limits bound texts in Unicode scalar values, marker included and heading not, in the
// order of the table. Zero fields are the defaults.
type Limits struct {
	// SectionChars (20,000) bounds each text of the host, TotalChars (64,000) all of them.
	SectionChars, TotalChars int
	// FileChars (20,000) bounds each persona file, FilesChars (150,000) all of them.
	FileChars, FilesChars int
}

func (l Limits) withDefaults() Limits {
	l.SectionChars = cmp.Or(max(l.SectionChars, 0), 20_000)
	l.TotalChars = cmp.Or(max(l.TotalChars, 0), 64_000)
	l.FileChars = cmp.Or(max(l.FileChars, 0), 20_000)
	l.FilesChars = cmp.Or(max(l.FilesChars, 0), 150_000)
	return l
}
