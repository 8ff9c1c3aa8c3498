package chain

import (
	"path/filepath"
	"slices"
	"strings"
)

// PresetDefault is the name of the preset that [Default] fills in.
const PresetDefault = "default"

// Options say how a chain is found. They come from the person or the operator,
// never from the tree that is looked at. The zero value is [Default] without a
// global file: a nil list or a zero number means the default, an empty list
// that is not nil means none.
type Options struct {
	// Preset is the name of the set of options that these began as. Nothing
	// depends on it.
	Preset string `json:"preset"`
	// Names are the candidates in a folder; the first regular file wins. A name
	// with ".override." inside is an override: without text it falls through to
	// the names after it.
	Names []string `json:"names"`
	// FallbackNames are tried after Names. None by default.
	FallbackNames []string `json:"fallback_names"`
	// Markers are the names, of files or folders, that make a folder a root. An
	// empty list makes the working folder the root.
	Markers []string `json:"markers"`
	// Root, if set, is the root whatever the markers say; absolute.
	Root string `json:"root"`
	// Home is the user's home folder, which is no root unless given as Root.
	Home string `json:"home"`
	// ConfigDirs are the user's configuration folders. Markers in and below
	// them do not count.
	ConfigDirs []string `json:"config_dirs"`
	// Allow are folders outside of the root that links may lead to; absolute.
	Allow []string `json:"allow"`
	// GlobalDir is the folder of the global file, absolute; empty for none.
	GlobalDir string `json:"global_dir"`
	// GlobalNames are the candidates there.
	GlobalNames []string `json:"global_names"`
	// Budget are the limits of each source and of their number.
	Budget Limits `json:"budget"`
	// Lazy says that files in other folders are delivered when they are touched.
	// The header then tells the model how to deal with that.
	Lazy bool `json:"lazy"`
	_    struct{}
}

// Limits are the parts of the budget that the tree's owner sets. Zero means the
// default.
type Limits struct {
	// File bounds the bytes of one body.
	File int `json:"file"`
	// Total bounds the bytes of the whole text. [Render] does not read it: the
	// caller passes it in [Budget], where 0 means nothing at all.
	Total int `json:"total"`
	// Files bounds the number of sources with text.
	Files int `json:"files"`
	// Floor is how many bytes of a project's source are kept before a farther
	// one gets any; GlobalFloor is the same for managed and global ones.
	Floor       int `json:"floor"`
	GlobalFloor int `json:"global_floor"`
}

// The numbers of the default preset.
const (
	defaultFileBytes   = 32 << 10
	defaultTotalBytes  = 32 << 10
	defaultFiles       = 32
	defaultFloor       = 1 << 10
	defaultGlobalFloor = 4 << 10
)

// Default returns the options of the default preset, to be changed by the
// caller.
func Default() Options { return Options{}.filled() }

// filled replaces what is absent by the default. Lists come out non-nil and
// unshared, so that they print as lists.
func (o Options) filled() Options {
	if o.Preset == "" {
		o.Preset = PresetDefault
	}
	o.Names = listOr(o.Names, "AGENTS.override.md", "AGENTS.md")
	o.FallbackNames = listOr(o.FallbackNames)
	o.Markers = listOr(o.Markers, ".git", ".jj", ".hg")
	o.ConfigDirs = listOr(o.ConfigDirs)
	o.Allow = listOr(o.Allow)
	o.GlobalNames = listOr(o.GlobalNames, "AGENTS.override.md", "AGENTS.md")
	o.Budget = o.Budget.filled()
	return o
}

// filled replaces zero by the default.
func (l Limits) filled() Limits {
	return Limits{
		File:        numberOr(l.File, defaultFileBytes),
		Total:       numberOr(l.Total, defaultTotalBytes),
		Files:       numberOr(l.Files, defaultFiles),
		Floor:       numberOr(l.Floor, defaultFloor),
		GlobalFloor: numberOr(l.GlobalFloor, defaultGlobalFloor),
	}
}

// listOr returns a copy of the list, or the default where it is nil.
func listOr(list []string, def ...string) []string {
	if list == nil {
		list = def
	}
	return append([]string{}, list...)
}

// numberOr returns the number, or the default where it is not positive.
func numberOr(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// nearMisses are names that people write, or systems without case make, for
// AGENTS.md. They are looked for by name: a folder is never listed.
func nearMisses() [6]string {
	return [...]string{"agents.md", "Agents.md", "AGENTS.MD", "AGENT.md", "Agent.md", "agent.md"}
}

// isOverride reports whether a candidate is an override by its name.
func isOverride(name string) bool { return strings.Contains(name, ".override.") }

// isFileName reports whether a name is one plain element of a path.
func isFileName(name string) bool {
	return name != "" && name != "." && name != ".." &&
		!strings.ContainsAny(name, "/\x00") && !strings.ContainsRune(name, filepath.Separator) &&
		filepath.VolumeName(name) == ""
}

// plainNames splits a list into file names and what is none.
func plainNames(names []string) (good, bad []string) {
	for _, name := range names {
		switch {
		case !isFileName(name):
			bad = append(bad, name)
		case !slices.Contains(good, name):
			good = append(good, name)
		}
	}
	return good, bad
}
