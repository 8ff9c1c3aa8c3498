package merge

import (
	"slices"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// houseOwned reports whether a section id is one of the compiler's own rows, or
// reads like one, which no hook may fill, whatever was granted.
func houseOwned(id string) bool {
	_, known := knownTitle(id)
	return !known && houseHeading(text.Letters(id))
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

// houseHeading reports whether a heading of the given letters (see text.Letters)
// would pass for one of the compiler's own. The ids and titles of its table have the
// same letters.
func houseHeading(letters string) bool {
	switch letters {
	case "identity", "safety", "soulcore", "identitycore", "userpersona", "toolrecoverypolicy", "taskorchestration", "memoryrecall",
		"hiddentooldomains", "agentsmd", "recoverycontinuation", "skillsruntime", "retryinstruction", "dynamiccontext", "extrasystem":
		return true
	}
	return false
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
