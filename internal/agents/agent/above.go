package agent

// AbovePlace is a place where something may be installed that outvotes, hides or changes what Grapnel's hooks say.
type AbovePlace struct {
	// Kind says in a word what is installed there; absolute files have "managed hooks". Of [Mods], Files have the settings
	// besides the project's.
	Kind string
	// Files are absolute, or below ~/ (the user's home) or ./ (the project), with * as in [path.Match].
	Files []string
	// List is the member of Files that names plugins. Off are settings, below others behind a /, and what they do if true.
	List string
	Off  map[string]string
	// Last says that nothing of Grapnel's runs after it.
	Last bool
	// Own is the source of Grapnel's own mod.
	Own string
	// Powers say what those can do that take one of some events; names of events may end with *.
	Powers map[string][]string
}

// Mods is the [AbovePlace.Kind] of Claude Code's mods.
const Mods = "mod"

// Above is one thing above Grapnel's hooks.
type Above struct {
	ID     string   `json:"id"`
	Kind   string   `json:"kind"   jsonschema:"mod, plugin, extension, managed hooks, setting, or Grapnel's mod"`
	Path   string   `json:"path"   jsonschema:"its directory or file"`
	Events []string `json:"events" jsonschema:"those of the agent's events that it takes and that bear on Grapnel's hooks"`
	Can    []string `json:"can"    jsonschema:"what it can do, in plain words; empty for nothing"`
	Before bool     `json:"before" jsonschema:"it has the last word: nothing of Grapnel's stands above it"`
}
