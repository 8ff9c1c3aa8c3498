package chain

import (
	"path/filepath"
	"strings"
)

// Options say how a chain is found and rendered. They come from the person or the operator, never from the tree.
//
// The zero value is the default preset without the user's own files: there, and wherever Layout is empty, a nil list
// or a zero number means the default of that preset, and a list that is empty and not nil means none. With a Layout,
// as [ForPreset] gives it, Options mean what they say.
type Options struct {
	// Preset is the name of the set of options that these began as. Nothing depends on it.
	Preset Preset `json:"preset"`

	// Names are the candidates in a directory; the first regular file wins. A name with ".override." inside is an
	// override.
	//
	// A name may lead into directories, as .claude/CLAUDE.md does.
	Names         []string `json:"names"`
	FallbackNames []string `json:"fallback_names"` // tried after Names
	// AllNames takes all candidates of a directory, in order.
	AllNames bool `json:"all_names,omitempty"`
	// Otherwise are lists of names. The first with a file in any directory of the tree replaces Names if none of those,
	// nor of LocalNames, is in one.
	Otherwise [][]string `json:"otherwise,omitempty"`
	// NearestFirst orders the files of the tree from the working directory to the root.
	NearestFirst bool `json:"nearest_first,omitempty"`
	// Rules are further files of each directory.
	Rules Rules `json:"rules,omitzero"`
	// LocalNames are the person's own files, all of which follow the chosen file of their directory. They are read from
	// trusted roots only.
	LocalNames    []string      `json:"local_names"`
	EmptyOverride EmptyOverride `json:"empty_override"`

	// Markers are the names, of files or directories, that make a directory a root. An empty list makes the working
	// directory the root.
	Markers []string `json:"markers"`
	// Root, if set, is the root whatever the markers say; absolute.
	Root string `json:"root"`
	// Boundary, if set, is a directory that contains the working directory and that no file of the tree is read outside
	// of, whatever the markers and Root say. Both are real paths, so a link on the way from one to the other is not
	// followed.
	Boundary string `json:"boundary,omitempty"`
	// Home is the user's home directory. With Checks.WideRoots it is not a root unless given as Root.
	Home       string   `json:"home"`
	ConfigDirs []string `json:"config_dirs"` // of the user; markers in and below them do not count
	// Allow are directories outside of the root that links may lead to, and that make roots in and below them listed;
	// absolute.
	Allow []string `json:"allow"`
	// Exclude are globs of files and directories, relative to the root, that are ignored. One without a slash matches
	// at any depth, and ** matches any number of directories.
	Exclude []string `json:"exclude"`
	// Trust says which roots' files are instructions, and Untrusted how the others are treated.
	Trust     Trust     `json:"trust"`
	Untrusted Untrusted `json:"untrusted"`

	Managed string `json:"managed"` // the file of the operator, absolute; empty for none
	// GlobalDir is the directory of the user's global file, absolute; empty for none. GlobalNames are the candidates
	// there.
	GlobalDir   string   `json:"global_dir"`
	GlobalNames []string `json:"global_names"`

	// Imports says how a text names other files, and what becomes of them. LayoutJoined has none.
	Imports ImportStyle `json:"imports"`
	// Markdown leaves front matters and comments out of texts.
	Markdown bool   `json:"markdown,omitempty"`
	Checks   Checks `json:"checks"`

	Layout    Layout    `json:"layout"`
	Placement Placement `json:"placement"`
	ChildHint bool      `json:"child_hint"` // adds a text on how files of nested directories work
	Budget    Limits    `json:"budget"`

	// Lazy says that files in other directories are delivered when they are touched. The header then tells the model
	// how to deal with that.
	Lazy     bool     `json:"lazy"`
	Resolver Resolver `json:"resolver"` // how they are delivered

	// Readers give the model files by themselves, before this chain does: those are skipped.
	Readers []Reader `json:"-"`
	// Above counts files above the root and within the boundary, too. Only their names are looked at.
	Above bool `json:"-"`
	_     struct{}
}

// Rules are directories of files with any names, each below a directory of the chain. What is in and below one is
// taken in the order of the names, after the chosen files. A front matter with paths or globs makes a file apply only
// where a tool touches a matching path; see [Source].
type Rules struct {
	Dir       string   `json:"dir"`        // such as .claude/rules; empty for none
	GlobalDir string   `json:"global_dir"` // below Options.GlobalDir; empty for none
	Suffixes  []string `json:"suffixes"`   // of the names that count
	Bare      bool     `json:"bare"`       // a file without paths and globs always applies; if not, alwaysApply has to say so
}

// EmptyOverride says what an override without text does in its directory.
type EmptyOverride struct {
	Project OverrideRule `json:"project"`
	Global  OverrideRule `json:"global"`
}

// Checks are the rules that only the default preset has.
type Checks struct {
	Normal     bool `json:"normal"`      // normalizes bytes; a NUL near the beginning means that a file is not text
	Duplicates bool `json:"duplicates"`  // keeps only the nearest of files that are one, or have one text
	Stubs      bool `json:"stubs"`       // follows files that hold nothing but a path, as links
	NearMisses bool `json:"near_misses"` // reports files whose names look like a candidate's
	WideRoots  bool `json:"wide_roots"`  // refuses the top of the file system and the home directory as marked roots
	Hidden     bool `json:"hidden"`      // reports invisible characters
}

// Limits bound a text. In layouts other than LayoutDelimited a zero File or Files does not limit, and floors are not
// used.
type Limits struct {
	File  int `json:"file"`  // of one body
	Total int `json:"total"` // of the text, or, in LayoutJoined and LayoutTitled, of the files in it
	Files int `json:"files"` // of sources with text
	// Floor is how many bytes of a project's source are kept before a farther one gets any; GlobalFloor is the same for
	// managed and global ones.
	Floor       int `json:"floor"`
	GlobalFloor int `json:"global_floor"`
}

// Resolver says how files of directories that tools touch reach the model; see package lazy.
type Resolver struct {
	Delivery    Delivery    `json:"delivery"`
	ChangedWhen ChangedWhen `json:"changed_when"`
	// RootFirst takes the files nearest to the root when there are too many; the nearest to the touched directory
	// otherwise.
	RootFirst bool `json:"root_first"`
	// MaxFiles bounds the files of one answer, MaxFile the bytes of one body, MaxEvent those of all bodies together.
	MaxFiles int `json:"max_files"`
	MaxFile  int `json:"max_file"`
	MaxEvent int `json:"max_event"`
}

// Filled are the default options in place of ones without a layout. Its lists are non-nil and unshared.
func (o Options) Filled() Options {
	if o.Layout == "" {
		o = Default()
	}
	return o.unshared()
}

// unshared makes lists of the options' own, which are not nil.
func (o Options) unshared() Options {
	for _, list := range []*[]string{&o.Names, &o.FallbackNames, &o.LocalNames, &o.Markers, &o.ConfigDirs, &o.Allow, &o.Exclude, &o.GlobalNames} {
		*list = append([]string{}, *list...)
	}
	return o
}

// IsOverride reports whether a candidate is an override by its name.
func IsOverride(name string) bool { return strings.Contains(name, ".override.") }

// IsFileName reports whether a name is one plain element of a path, as names and markers have to be.
func IsFileName(name string) bool {
	return name != "" && name != "." && name != ".." &&
		!strings.ContainsAny(name, "/\x00") && !strings.ContainsRune(name, filepath.Separator) &&
		filepath.VolumeName(name) == ""
}

// IsFilePath reports whether a path leads down by plain elements, with slashes between them.
func IsFilePath(name string) bool {
	for elem := range strings.SplitSeq(name, "/") {
		if !IsFileName(elem) {
			return false
		}
	}
	return strings.Count(name, "/") < 4
}

// IsGlob reports whether a pattern is valid in Exclude.
func IsGlob(pattern string) bool {
	_, err := excludeGlob(pattern)
	return err == nil
}

// The enumerations of options. Their zero values mean that nothing was chosen.
type (
	// Preset names a set of options.
	Preset string
	// OverrideRule says what an override without text does.
	OverrideRule string
	// Trust says which roots' files are instructions. The user's and the operator's always are.
	Trust string
	// Untrusted says how files of an untrusted root are treated.
	Untrusted string
	// Layout says how sources become a text, and how they share the budget.
	Layout string
	// ImportStyle says how a text names files to import.
	ImportStyle string
	// Placement says where in the conversation a text belongs.
	Placement string
	// Delivery says how a file of a touched directory reaches the model.
	Delivery string
	// ChangedWhen says when a delivered file counts as changed.
	ChangedWhen string
)

// The presets.
const (
	PresetDefault Preset = "default"
	PresetCodex   Preset = "codex"
	PresetCodelia Preset = "codelia"
	PresetClaude  Preset = "claude"
	PresetGemini  Preset = "gemini"

	PresetOpencode Preset = "opencode"
	PresetCursor   Preset = "cursor"
)

// The rules for an override without text.
const (
	OverrideFallsThrough OverrideRule = "falls_through" // tries the names after it
	OverrideShadows      OverrideRule = "shadows"       // leaves its directory without a file
)

// The kinds of trust.
const (
	TrustAll    Trust = "all"
	TrustListed Trust = "listed" // roots in and below the directories of Options.Allow
	TrustNone   Trust = "none"
)

// The treatments of untrusted files.
const (
	UntrustedNames Untrusted = "names" // one line with the path
	UntrustedSkip  Untrusted = "skip"  // nothing, as if they were not there
	UntrustedText  Untrusted = "text"  // the text, without characters that reorder or hide it
)

// The layouts.
const (
	// LayoutDelimited is a header, and each source behind a delimiter line, its body escaped. All share the budget, and
	// the nearest loses last.
	LayoutDelimited Layout = "delimited"
	// LayoutJoined is the bare text of the files, separated by blank lines. From the root down each takes what is left
	// of the budget and is cut at the byte; user-wide files come first, trimmed, and take nothing of it.
	LayoutJoined Layout = "joined"
	// LayoutTitled is each file, without white space at its end, below a line with its path. Files are whole, and the
	// first that does not fit ends the list.
	LayoutTitled   Layout = "titled"
	LayoutContents Layout = "contents" // the same with the lines of Claude Code
	LayoutContext  Layout = "context"  // the same with the lines of Gemini CLI
	// LayoutUntrimmed is LayoutTitled with all white space of the files, and one newline between them.
	LayoutUntrimmed Layout = "untrimmed"
)

// The styles of imports.
const (
	ImportOff    ImportStyle = "off"
	ImportLines  ImportStyle = "lines"  // whole lines, @./path, @../path or @NAME.md, replaced by the text
	ImportInline ImportStyle = "inline" // words, @path, replaced by the text between comments, as in Gemini CLI
	ImportListed ImportStyle = "listed" // words, @path; the files follow, each once, as in Claude Code
)

// The placements.
const (
	PlaceSystem        Placement = "system"         // a section of the system prompt
	PlaceUserMessage   Placement = "user_message"   // a user message before the first one
	PlaceSystemMessage Placement = "system_message" // a system message after the others
)

// The deliveries.
const (
	DeliverBody     Delivery = "body"
	DeliverReminder Delivery = "reminder"
	DeliverOff      Delivery = "off"
)

// The signs of change.
const (
	ChangedByHash        ChangedWhen = "hash"
	ChangedByTimeOrHash  ChangedWhen = "mtime_or_hash"
	ChangedNeverResolved ChangedWhen = "never"
)
