package compiler

import (
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Codes of the compiler's diagnostics, besides [phases.CodeLeftOut].
const (
	// CodeUnstable is a section declared stable that changed within a session.
	CodeUnstable = "unstable_section"
	// CodeHostCut is a text of the host that was cut.
	CodeHostCut = "host_text_truncated"
	// CodeFileCut and CodeFilesCut are texts of the runtime home that were cut by
	// the limit of one file and by that of all files.
	CodeFileCut  = "file_truncated"
	CodeFilesCut = "total_budget_truncated"
	// CodeInvalidUTF8 is a text that had to be repaired.
	CodeInvalidUTF8 = "invalid_utf8"
	// CodeBelowMinimum is a prompt that is shorter than what the model caches.
	CodeBelowMinimum = "below_cache_minimum"
	// CodeAnchor is a custom section whose anchor is not there.
	CodeAnchor = "anchor_missing"
)

// Reasons in LeftOut.
const (
	ReasonProfile  = "profile"
	ReasonBlank    = "blank"
	ReasonBudget   = "budget"
	ReasonFiltered = "filtered"
)

// Output is a compiled prompt and what there is to say about it. It shares
// strings with the input and nothing else.
type Output struct {
	Prompt Prompt
	// Profile is the one that was compiled, never empty.
	Profile      phases.Profile
	Fingerprints manifest.Fingerprints
	// Sections stand in the order in which they reach the model: the stable and
	// the dynamic part, system messages, user messages.
	Sections []manifest.Section
	// LeftOut has one row for each section that has no place in the prompt, in
	// the order of the table. The host's text for dynamic_context can be left out
	// while the contexts of hooks are in.
	LeftOut []phases.LeftOut
	// Tools are the rows of the tools, hidden ones included, sorted by name.
	Tools []manifest.Tool
	// Offered are the tools of the request, sorted by name: those of the input
	// that are not hidden, and [RequestTools] where there are hidden ones, tool
	// calling is on and the section hidden_tool_domains is in the prompt.
	Offered []phases.MergedTool
	// Files are the rows of the input; their Chars say how much of each text is in
	// the prompt, without what stands around it.
	Files []manifest.File
	Cache manifest.Cache
	// Texts are the rendered sections, each fingerprint once, where
	// [Input.KeepTexts] asks for them. They are substrings of the prompt.
	Texts []manifest.Text
	// Diagnostics name their section as Slot. Their messages are safe for users.
	Diagnostics []phases.Diagnostic
}

// Prompt is what the adapters of providers are handed.
type Prompt struct {
	StableText  string `json:"stable_text"`
	DynamicText string `json:"dynamic_text"`
	// FullText is both, with the boundary between them if both have text.
	FullText string `json:"full_text"`
	// Boundary is the boundary that stands in FullText; empty if none does.
	Boundary string `json:"boundary"`
	// SystemMessages follow the system prompt. UserMessages stand before the
	// user's first turn. Neither is in FullText.
	SystemMessages []Message `json:"system_messages"`
	UserMessages   []Message `json:"user_messages"`
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

// Manifest returns a record that holds what the compiler knows. The caller adds
// the rest of the head, the ledger, and more of left_out and diagnostics.
func (o Output) Manifest() manifest.Manifest {
	m := manifest.New()
	m.CompilerVersion = Version
	m.Profile = o.Profile
	m.Fingerprints = o.Fingerprints
	m.Sections = o.Sections
	m.LeftOut = o.LeftOut
	m.Tools = o.Tools
	m.Files = o.Files
	m.Cache = o.Cache
	m.Diagnose(o.Diagnostics)
	m.Complete()
	return m
}
