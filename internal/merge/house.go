package merge

import (
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// houseOwned reports whether a section id is one of the compiler's own rows,
// which no hook may fill, whatever was granted.
func houseOwned(id string) bool {
	switch id {
	case "identity", "safety", "soul_core", "identity_core", "user_persona", "tool_recovery_policy", "task_orchestration",
		"hidden_tool_domains", "recovery_continuation", "retry_instruction", "dynamic_context", "extra_system":
		return true
	}
	return false
}

// knownTitle returns the title of a row that the compiler's table keeps for
// hooks. Such a row keeps its place, title and stability (all are dynamic), and
// is granted by its exact name only.
func knownTitle(id string) (title string, known bool) {
	switch id {
	case "agents_md":
		return "AGENTS.md", true
	case "memory_recall":
		return "Memory Recall", true
	case "skills_runtime":
		return "Skills Runtime", true
	}
	return "", false
}

// names reports whether a list of grants covers a section id. No wildcard
// covers the rows of the compiler's table.
func names(granted []string, id string) bool {
	if houseOwned(id) {
		return false
	}
	if _, known := knownTitle(id); known {
		return slices.Contains(granted, id)
	}
	return phases.Allows(granted, id)
}
