package compiler

import "github.com/grapnelhq/grapnel/phases"

// row is one line of the table of sections.
type row struct {
	// id is the section's id, or the name of a group.
	id, title string
	stability phases.Stability
	// least is the smallest profile that keeps the section.
	least phases.Profile
	pace  Pace
	// source says where the text comes from. Nil: a hook contributes it under
	// this id.
	source func(c *compilation, s *section)
}

// The groups: the places of hook sections that have no row of their own. Their
// names are no valid section ids.
const (
	groupStable  = "(stable hook sections)"
	groupDynamic = "(dynamic hook sections)"
)

// Section ids that are spoken of outside the table.
const (
	idHiddenDomains = "hidden_tool_domains"
	idExtraSystem   = "extra_system"
)

const (
	stable  = phases.StabilityStable
	dynamic = phases.StabilityDynamic
)

// table is the reference order: all sections, in order.
//
//nolint:gochecknoglobals // an immutable table
var table = []row{
	{"identity", "Identity", stable, phases.ProfileNone, PaceSession, fromHost(func(h *HostTexts) string { return h.Identity }, builtinIdentity)},
	{"safety", "Safety", stable, phases.ProfileMinimal, PaceSession, fromHost(func(h *HostTexts) string { return h.Safety }, builtinSafety)},
	{"soul_core", "Soul Core", stable, phases.ProfileFull, PaceSession, fromFile("SOUL.md", soulNote, func(h *HostTexts) string { return h.SoulCore })},
	{"identity_core", "Identity Core", stable, phases.ProfileFull, PaceSession, fromFile("IDENTITY.md", identityNote, func(h *HostTexts) string { return h.IdentityCore })},
	{"user_persona", "User Persona", stable, phases.ProfileFull, PaceSession, fromFile("USER.md", "", func(h *HostTexts) string { return h.UserPersona })},
	{"tool_recovery_policy", "Tool Recovery Policy", stable, phases.ProfileMinimal, PaceSession, toolRecovery},
	{groupStable, "", stable, phases.ProfileMinimal, PaceSession, nil},
	{"task_orchestration", "Task Orchestration", dynamic, phases.ProfileMinimal, PaceSession, taskOrchestration},
	{"memory_recall", "Memory Recall", dynamic, phases.ProfileFull, PaceTurn, nil},
	{idHiddenDomains, "Hidden Tool Domains", dynamic, phases.ProfileFull, PaceSession, hiddenDomains},
	{"agents_md", "AGENTS.md", dynamic, phases.ProfileMinimal, PaceSession, nil},
	{groupDynamic, "", dynamic, phases.ProfileMinimal, PaceTurn, nil},
	{"recovery_continuation", "Recovery Continuation", dynamic, phases.ProfileMinimal, PaceCall, fromHost(func(h *HostTexts) string { return h.RecoveryContinuation }, "")},
	{"skills_runtime", "Skills Runtime", dynamic, phases.ProfileFull, PaceTurn, nil},
	{"retry_instruction", "Retry Instruction", dynamic, phases.ProfileMinimal, PaceCall, fromHost(func(h *HostTexts) string { return h.RetryInstruction }, "")},
	{"dynamic_context", "Dynamic Context", dynamic, phases.ProfileMinimal, PaceTurn, dynamicContext},
	// The facts go last: a date that changes leaves everything before it cached.
	{idExtraSystem, "Extra System", dynamic, phases.ProfileMinimal, PaceCall, facts},
}

// rowOf returns the table's row of a section id, or nil.
func rowOf(id string) *row {
	for i := range table {
		if table[i].id == id {
			return &table[i]
		}
	}
	return nil
}

// isGroup reports whether the row is a place for hook sections without a row.
func (r *row) isGroup() bool { return r.id == groupStable || r.id == groupDynamic }

// keeps reports whether a profile keeps what needs at least the other one.
func keeps(profile, least phases.Profile) bool { return size(profile) >= size(least) }

func size(p phases.Profile) int {
	switch p {
	case phases.ProfileNone:
		return 1
	case phases.ProfileMinimal:
		return 2
	default:
		return 3
	}
}
