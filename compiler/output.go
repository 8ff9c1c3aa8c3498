package compiler

import (
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Codes of the compiler's diagnostics, besides [phases.CodeOmitted].
const (
	codeUnstable     = "unstable_section"       // a section that was declared stable changed within the session
	codeHostCut      = "host_text_truncated"    // a text of the host was cut
	codeFileCut      = "file_truncated"         // a persona file was cut by its own limit, or is too large to be read whole
	codeFilesCut     = "total_budget_truncated" // a persona file was cut by the limit of all
	codeInvalidUTF8  = "invalid_utf8"           // a text was not UTF-8, or held NUL, and was repaired
	codeBelowMinimum = "below_cache_minimum"    // tools and prompt are shorter than what the model caches
	codeAnchor       = "anchor_missing"         // a section of the host should stand beside a missing one
)

// Reasons in Omitted.
const (
	ReasonProfile  = "profile"  // the profile does not have this section
	ReasonBlank    = "blank"    // the text has nothing visible
	ReasonBudget   = "budget"   // none of it fits into a limit
	ReasonFiltered = "filtered" // the model cannot call tools: `hidden_tool_domains` and `request_tools` are omitted
	// ReasonHostCannot: the host takes texts of hooks alone (Input.HooksOnly).
	ReasonHostCannot = "host_cannot"
)

// Output is a compiled prompt and its record. It shares only strings with the input.
type Output struct {
	Prompt Prompt
	// Profile is the one that was compiled, never empty.
	Profile      phases.Profile
	Fingerprints manifest.Fingerprints
	// Sections are in the order in which they reach the model: stable part, dynamic part,
	// system messages, user messages.
	Sections []manifest.Section
	// Omitted has one row for each section that is not in the prompt, in the order of
	// the table, and one for the host's dynamic_context if only that is omitted.
	Omitted []phases.Omitted
	// Tools are the rows of the tools, hidden ones included, sorted by name.
	Tools []manifest.Tool
	// Offered are the tools of the request, sorted by name, with [RequestTools] if there
	// are hidden ones and the prompt has the section hidden_tool_domains.
	Offered []phases.MergedTool
	// Files are the rows of the input; Chars says how much of each text is in the prompt.
	Files []manifest.File
	// HostTools and History are those of an observed request; nil from Render.
	HostTools []manifest.HostTool
	History   *manifest.History
	Cache     manifest.Cache
	// Texts are the rendered sections, each once, with [Input.KeepTexts].
	Texts []manifest.Text
	// Diagnostics name their section as Slot. Their messages are safe for users.
	Diagnostics []phases.Diagnostic
}

// Prompt is what adapters of providers send.
type Prompt struct {
	StableText  string `json:"stable_text"`
	DynamicText string `json:"dynamic_text"`
	// FullText is both, with the boundary between them if both have text.
	FullText string `json:"full_text"`
	// Boundary is the boundary in FullText; empty if there is none.
	Boundary string `json:"boundary"`
	// SystemMessages follow the system prompt, UserMessages precede the user's first turn. Neither is in FullText.
	SystemMessages []Message `json:"system_messages"`
	UserMessages   []Message `json:"user_messages"`
	// Parts are the texts of the sections, those of messages included, in the order of [Output.Sections].
	Parts []string `json:"-"`
	// CachePlan is where the provider should be asked to cache.
	CachePlan manifest.CachePlan `json:"cache_plan"`
}

// Message is a section that is a message of its own.
type Message struct {
	SectionID string `json:"section_id"`
	// Role is "system" or "user".
	Role string `json:"role"`
	Text string `json:"text"`
}

// Manifest returns a record with what the compiler knows; the caller adds the rest.
func (o Output) Manifest() manifest.Manifest {
	m := manifest.New()
	m.CompilerVersion = Version
	m.Profile = o.Profile
	m.Fingerprints = o.Fingerprints
	m.Sections = o.Sections
	m.Omitted = o.Omitted
	m.Tools = o.Tools
	m.Files = o.Files
	m.HostTools, m.History = o.HostTools, o.History
	m.Cache = o.Cache
	m.Diagnose(o.Diagnostics)
	m.Complete()
	return m
}
