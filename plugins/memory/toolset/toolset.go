package toolset

import (
	"embed"
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
)

// The names of the tools.
const (
	Search   = "memory_search"
	List     = "memory_list"
	Get      = "memory_get"
	Remember = "memory_remember"
	Forget   = "memory_forget"
)

// Names returns the names of all tools.
func Names() []string { return []string{Search, List, Get, Remember, Forget} }

//go:embed schemas/*.json
var schemas embed.FS

// Allowed says which of the tools may be called.
type Allowed struct {
	// Read are memory_search, memory_list and memory_get.
	Read, Remember, Forget bool
}

// Everything allows all tools.
func Everything() Allowed { return Allowed{Read: true, Remember: true, Forget: true} }

// Allows reports whether a tool is among them.
func (a Allowed) Allows(tool string) bool {
	switch tool {
	case Search, List, Get:
		return a.Read
	case Remember:
		return a.Remember
	case Forget:
		return a.Forget
	}
	return false
}

// Definitions returns the tools that are allowed, as a model sees them. Each is the
// same bytes always: tools stand at the very beginning of what providers cache.
func Definitions(a Allowed) []phases.Tool {
	var all []phases.Tool
	for _, name := range Names() {
		if a.Allows(name) {
			all = append(all, phases.Tool{Name: name, Description: description(name), InputSchema: schema(name)})
		}
	}
	return all
}

// schema is the JSON Schema of a tool's arguments.
func schema(tool string) json.RawMessage {
	data, err := schemas.ReadFile("schemas/" + tool + ".json")
	if err != nil {
		return nil // each tool has a file; a test covers them
	}
	return data
}

// description is what a tool does, for the model.
func description(tool string) string {
	switch tool {
	case Search:
		return "Searches what is remembered from earlier conversations, and returns the memories that fit best. Use it when the user refers to something that they said before."
	case List:
		return "Lists what is remembered, the latest first, in pages. Use it when the user asks what you remember."
	case Get:
		return "Returns one memory whole, with what was said when it was stored."
	case Remember:
		return "Stores one fact that will still matter in later conversations: a preference, a decision, something about the user or their work. " +
			"Use it when the user asks you to remember something. Never store passwords, keys or other secrets."
	case Forget:
		return "Removes memories for good: by ids at once, or by a query in two calls, the second of which confirms what the first one found. " +
			"Use it only when the user asks you to forget something."
	}
	return ""
}
