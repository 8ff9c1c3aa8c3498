package option

import (
	"cmp"
	"path"
	"path/filepath"
	"strings"
)

// Set is all that may be said of how a chain is found and rendered. It comes from
// the person or the operator, never from the tree that is looked at.
//
// The zero value is the default preset without the user's own files: there, and
// wherever Layout is empty, a nil list or a zero number means the default of
// that preset, and a list that is empty and not nil means none. With a Layout,
// as [ForPreset] gives it, a Set means what it says.
type Set struct {
	// Preset is the name of the set of options that these began as. Nothing
	// depends on it.
	Preset Preset `json:"preset"`

	// Names are the candidates in a folder; the first regular file wins. A name
	// with ".override." inside is an override: what it means when it is without
	// text, EmptyOverride says.
	Names []string `json:"names"`
	// FallbackNames are tried after Names.
	FallbackNames []string `json:"fallback_names"`
	// LocalNames are the person's own files, which follow the chosen file of
	// their folder and are read from trusted roots only; each that is there.
	LocalNames    []string      `json:"local_names"`
	EmptyOverride EmptyOverride `json:"empty_override"`

	// Markers are the names, of files or folders, that make a folder a root. An
	// empty list makes the working folder the root.
	Markers []string `json:"markers"`
	// Root, if set, is the root whatever the markers say; absolute.
	Root string `json:"root"`
	// Boundary, if set, is a folder that contains the working folder and that no
	// file of the tree is read outside of, whatever the markers and Root say. Both
	// are real paths, so a link on the way from one to the other is not followed.
	Boundary string `json:"boundary,omitempty"`
	// Home is the user's home folder, which is no root unless given as Root,
	// where Checks say so.
	Home string `json:"home"`
	// ConfigDirs are the user's configuration folders. Markers in and below
	// them do not count.
	ConfigDirs []string `json:"config_dirs"`
	// Allow are folders outside of the root that links may lead to, and that
	// make roots in and below them listed; absolute.
	Allow []string `json:"allow"`
	// Exclude are globs of files and folders, relative to the root, that are
	// treated as not there. One without a slash matches at any depth, and **
	// matches any number of folders.
	Exclude []string `json:"exclude"`
	// Trust says which roots' files are instructions, and Untrusted what becomes
	// of the others.
	Trust     Trust     `json:"trust"`
	Untrusted Untrusted `json:"untrusted"`

	// Managed is the operator's file, absolute; empty for none.
	Managed string `json:"managed"`
	// GlobalDir is the folder of the user's global file, absolute; empty for
	// none. GlobalNames are the candidates there.
	GlobalDir   string   `json:"global_dir"`
	GlobalNames []string `json:"global_names"`

	// Imports reads what whole lines of the form @./path name. It has no effect
	// but in LayoutDelimited.
	Imports bool `json:"imports"`
	// Checks are the cares that other tools do not take.
	Checks Checks `json:"checks"`

	Layout    Layout    `json:"layout"`
	Placement Placement `json:"placement"`
	// ChildHint adds a text on how files of nested folders work.
	ChildHint bool `json:"child_hint"`
	// Budget are the limits of the text.
	Budget Limits `json:"budget"`

	// Lazy says that files in other folders are delivered when they are touched.
	// The header then tells the model how to deal with that.
	Lazy bool `json:"lazy"`
	// Resolver says how they are.
	Resolver Resolver `json:"resolver"`
	_        struct{}
}

// EmptyOverride says what an override without text does in its folder.
type EmptyOverride struct {
	Project OverrideRule `json:"project"`
	Global  OverrideRule `json:"global"`
}

// For returns the rule of the user's folders, or of a project's.
func (e EmptyOverride) For(userWide bool) OverrideRule {
	if userWide {
		return e.Global
	}
	return e.Project
}

// Checks are the rules that only the default preset has, each by itself.
type Checks struct {
	// Normal brings bytes into normal form and takes a NUL near the beginning
	// for a sign that a file is not text.
	Normal bool `json:"normal"`
	// Twins leaves of files that are one, or have one text, only the nearest.
	Twins bool `json:"twins"`
	// Stubs follows files that hold nothing but a path, as links.
	Stubs bool `json:"stubs"`
	// NearMisses reports files whose names look like a candidate's.
	NearMisses bool `json:"near_misses"`
	// WideRoots refuses the top of the file system and the home folder as roots
	// that markers name.
	WideRoots bool `json:"wide_roots"`
	// Hidden reports characters that do not show.
	Hidden bool `json:"hidden"`
}

// Limits bound a text. In LayoutDelimited zero means the default; in the others
// a zero File or Files is no limit, and floors are not used.
type Limits struct {
	// File bounds the bytes of one body.
	File int `json:"file"`
	// Total bounds the bytes of the text, or, in LayoutJoined and LayoutTitled,
	// of the files' text in it.
	Total int `json:"total"`
	// Files bounds the number of sources with text.
	Files int `json:"files"`
	// Floor is how many bytes of a project's source are kept before a farther
	// one gets any; GlobalFloor is the same for managed and global ones.
	Floor       int `json:"floor"`
	GlobalFloor int `json:"global_floor"`
}

// Resolver says how files of folders that tools touch reach the model, for the
// part of the plugin that delivers them.
type Resolver struct {
	Delivery    Delivery    `json:"delivery"`
	ChangedWhen ChangedWhen `json:"changed_when"`
	// RootFirst takes the files nearest to the root when there are too many; the
	// nearest to the touched folder otherwise.
	RootFirst bool `json:"root_first"`
	// MaxFiles bounds the files of one answer, MaxFile the bytes of one body,
	// MaxEvent those of all bodies together.
	MaxFiles int `json:"max_files"`
	MaxFile  int `json:"max_file"`
	MaxEvent int `json:"max_event"`
}

// Filled replaces what is absent by the default, unless there is a layout. Lists
// come out non-nil and unshared, so that they print as lists.
func (o Set) Filled() Set {
	if o.Layout == "" {
		o = o.over(Default())
	}
	for _, list := range o.lists() {
		*list = append([]string{}, *list...)
	}
	return o
}

// lists are the fields that are lists.
func (o *Set) lists() []*[]string {
	return []*[]string{
		&o.Names, &o.FallbackNames, &o.LocalNames, &o.Markers, &o.ConfigDirs,
		&o.Allow, &o.Exclude, &o.GlobalNames,
	}
}

// over returns the options with what they leave out taken from the base.
func (o Set) over(base Set) Set {
	given := o.lists()
	for i, list := range base.lists() {
		if *given[i] == nil {
			*given[i] = *list
		}
	}
	o.Preset = cmp.Or(o.Preset, base.Preset)
	o.EmptyOverride.Project = cmp.Or(o.EmptyOverride.Project, base.EmptyOverride.Project)
	o.EmptyOverride.Global = cmp.Or(o.EmptyOverride.Global, base.EmptyOverride.Global)
	o.Trust, o.Untrusted = cmp.Or(o.Trust, base.Trust), cmp.Or(o.Untrusted, base.Untrusted)
	o.Checks = cmp.Or(o.Checks, base.Checks)
	o.Layout, o.Placement = base.Layout, cmp.Or(o.Placement, base.Placement)
	o.Resolver = cmp.Or(o.Resolver, base.Resolver)
	o.Budget.Total = numberOr(o.Budget.Total, base.Budget.Total)
	o.Budget = o.Budget.Filled()
	return o
}

// Filled replaces zero by the default of LayoutDelimited, but for the total,
// where zero is a limit too.
func (l Limits) Filled() Limits {
	return Limits{
		File:        numberOr(l.File, defaultFileBytes),
		Total:       l.Total,
		Files:       numberOr(l.Files, defaultFiles),
		Floor:       numberOr(l.Floor, defaultFloor),
		GlobalFloor: numberOr(l.GlobalFloor, defaultGlobalFloor),
	}
}

// numberOr returns the number, or the default where it is not positive.
func numberOr(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// IsOverride reports whether a candidate is an override by its name.
func IsOverride(name string) bool { return strings.Contains(name, ".override.") }

// IsFileName reports whether a name is one plain element of a path, as names and
// markers have to be.
func IsFileName(name string) bool {
	return name != "" && name != "." && name != ".." &&
		!strings.ContainsAny(name, "/\x00") && !strings.ContainsRune(name, filepath.Separator) &&
		filepath.VolumeName(name) == ""
}

// IsGlob reports whether a pattern is one that Exclude understands.
func IsGlob(pattern string) bool {
	if strings.Trim(pattern, "/") == "" {
		return false
	}
	for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		if _, err := path.Match(part, ""); err != nil || part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}
