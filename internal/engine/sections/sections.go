// Package sections is the table of the prompt's sections: their ids and titles, the order in which they stand,
// who writes each, and why each can be absent. A new row here is a new section. The compiler makes the texts of
// the rows that are not filled by hooks; merging guards the rows' names; explanations say why a row is missing.
//
// Stability: internal.
package sections

import (
	"math"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// Ids that other packages name.
const (
	HiddenToolDomains = "hidden_tool_domains"
	DynamicContext    = "dynamic_context"
	ExtraSystem       = "extra_system"
)

// The groups: the places of hook sections that have no row of their own. Their names are not valid section ids.
const (
	GroupStable  = "(stable hook sections)"
	GroupDynamic = "(dynamic hook sections)"
)

// Row is one line of the table.
type Row struct {
	// ID is the section's id, or the name of a group.
	ID, Title string
	// Stability is the part of the prompt that the section stands in. Hooks cannot change it.
	Stability phases.Stability
	// Profile is the smallest profile that keeps the section.
	Profile phases.Profile
	// Pace says how soon the text is likely to change: "session", "turn" or "call".
	Pace string
	// File is the persona file that the text comes from, if it does.
	File string
	// Hooks says that hooks write the section. A plugin needs a grant of exactly
	// this id; no wildcard covers it. All other rows are reserved.
	Hooks bool
	// Writer is the built-in plugin that writes it.
	Writer string
	// Absent is the usual reason for which the section is missing, as the rest of a sentence. Of a section that hooks write
	// it is what the built-in plugin that writes it did.
	Absent string
}

const (
	stable  = phases.StabilityStable
	dynamic = phases.StabilityDynamic
	full    = phases.ProfileFull
	minimal = phases.ProfileMinimal
)

//nolint:gochecknoglobals // an immutable table
var table = []Row{
	{ID: "identity", Title: "Identity", Stability: stable, Profile: phases.ProfileNone, Pace: "session", Absent: "the host replaced it with a blank text"},
	{ID: "safety", Title: "Safety", Stability: stable, Profile: minimal, Pace: "session", Absent: "the host replaced it with a blank text"},
	{ID: "soul_core", Title: "Soul Core", Stability: stable, Profile: full, Pace: "session", File: "SOUL.md", Absent: "there is no SOUL.md, and the host brought no text"},
	{ID: "identity_core", Title: "Identity Core", Stability: stable, Profile: full, Pace: "session", File: "IDENTITY.md", Absent: "there is no IDENTITY.md, and the host brought no text"},
	{ID: "user_persona", Title: "User Persona", Stability: stable, Profile: full, Pace: "session", File: "USER.md", Absent: "there is no USER.md, and the host brought no text"},
	{ID: "tool_recovery_policy", Title: "Tool Recovery Policy", Stability: stable, Profile: minimal, Pace: "session", Absent: "the host did not ask for it (ToolRecovery)"},
	{ID: GroupStable, Stability: stable, Profile: minimal, Pace: "session", Hooks: true},
	{ID: "task_orchestration", Title: "Task Orchestration", Stability: dynamic, Profile: minimal, Pace: "session", Absent: "the host has no tools for tasks (TaskTools)"},
	{ID: "memory_recall", Title: "Memory Recall", Stability: dynamic, Profile: full, Pace: "turn", Hooks: true, Writer: "memory", Absent: "it recalled no memory for this turn"},
	{ID: HiddenToolDomains, Title: "Hidden Tool Domains", Stability: dynamic, Profile: full, Pace: "session", Absent: "no tool is hidden"},
	{ID: "agents_md", Title: "AGENTS.md", Stability: dynamic, Profile: minimal, Pace: "session", Hooks: true, Writer: "agentsdoc", Absent: "it found no AGENTS.md for the folder of the turn that the agent does not read by itself (grapnel agents chain shows where it looks)"},
	{ID: GroupDynamic, Stability: dynamic, Profile: minimal, Pace: "turn", Hooks: true},
	{ID: "recovery_continuation", Title: "Recovery Continuation", Stability: dynamic, Profile: minimal, Pace: "call", Absent: "no answer broke off: the host brought no text"},
	{ID: "skills_runtime", Title: "Skills Runtime", Stability: dynamic, Profile: full, Pace: "turn", Hooks: true, Writer: "skills", Absent: "it found no skill"},
	{ID: "retry_instruction", Title: "Retry Instruction", Stability: dynamic, Profile: minimal, Pace: "call", Absent: "nothing is retried: the host brought no text"},
	{ID: DynamicContext, Title: "Dynamic Context", Stability: dynamic, Profile: minimal, Pace: "turn", Absent: "no hook contributed a context, and the host brought no text"},
	// The facts go last: a date that changes leaves everything before it cached.
	{ID: ExtraSystem, Title: "Extra System", Stability: dynamic, Profile: minimal, Pace: "call", Absent: "there are no facts"},
}

//nolint:gochecknoglobals // an immutable table
var byID = func() map[string]*Row {
	m := map[string]*Row{}
	for i := range table {
		m[table[i].ID] = &table[i]
	}
	return m
}()

// letters are the letters (see text.Letters) of all ids and titles.
//
//nolint:gochecknoglobals // an immutable table
var letters = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for i := range table {
		if !table[i].IsGroup() {
			m[text.Letters(table[i].ID)], m[text.Letters(table[i].Title)] = true, true
		}
	}
	return m
})

// All returns the table in the reference order, which is the order in the prompt
// but for messages and an order for caches. It is read only.
func All() []Row { return table }

// Lookup returns the row of a section id; nil if it has none.
func Lookup(id string) *Row { return byID[id] }

// ForHooks returns the row of a section id that hooks write; nil if there is none.
func ForHooks(id string) *Row {
	if r := Lookup(id); r != nil && r.Hooks && !r.IsGroup() {
		return r
	}
	return nil
}

// Granted reports whether grants cover the id of a section that is not reserved. Wildcards do not cover the table's rows.
func Granted(granted []string, id string) bool {
	if ForHooks(id) != nil {
		return slices.Contains(granted, id)
	}
	return phases.Allows(granted, id)
}

// Reserved reports whether hooks must not write a section under an id, whatever
// they are granted: it is a row of the compiler's, or reads like one.
func Reserved(id string) bool { return ForHooks(id) == nil && TitleReadsLikeOne(id) }

// TitleReadsLikeOne is [ReadsLikeOne] for a heading itself.
func TitleReadsLikeOne(title string) bool {
	var space [64]byte
	return letters()[string(text.AppendLetters(space[:0], title))]
}

// ReadsLikeOne reports whether a heading of the given letters (see text.Letters)
// would pass for a section of the table.
func ReadsLikeOne(heading string) bool { return letters()[heading] }

// IsGroup reports whether the row is a place for hook sections without a row.
func (r *Row) IsGroup() bool { return r.ID == GroupStable || r.ID == GroupDynamic }

// Combine adds up the truncations of the parts of one text. Its limit is the one that cut
// the most, of equal ones the first in the order of limits.
func Combine(parts []phases.Truncation) phases.Truncation {
	limits := []phases.Limit{
		phases.LimitPlugin, phases.LimitContribution, phases.LimitSubscription, phases.LimitSection, phases.LimitTotal,
	}
	var out phases.Truncation
	most := math.MinInt
	for _, p := range parts {
		out.Original += p.Original
		out.Kept += p.Kept
		lost := p.Original - p.Kept
		if p.Limit != "" && (lost > most || lost == most && slices.Index(limits, p.Limit) < slices.Index(limits, out.Limit)) {
			out.Limit, most = p.Limit, lost
		}
	}
	return out
}
