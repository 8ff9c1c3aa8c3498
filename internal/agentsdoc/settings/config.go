// Package settings is the configuration of the AGENTS.md plugin: its keys, checks and JSON Schema. A configuration
// file, the environment and the flags of a command are each a [Config]; [New] merges them into the options that
// package chain takes. [Parse] reads one.
package settings

import (
	"encoding/json"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/sdk"
)

// Source says where instructions come from.
type Source string

// The sources.
const (
	SourceFiles Source = "files"
	SourceTree  Source = "tree"
	SourceBoth  Source = "both"
)

// Subtasks says what the turns of a sub-task get.
type Subtasks string

// The ways of sub-tasks.
const (
	SubtasksInherit     Subtasks = "inherit"      // gives the bytes of the parent session
	SubtasksManagedOnly Subtasks = "managed_only" // SubtasksManagedOnly gives the managed file alone
	SubtasksNone        Subtasks = "none"         // SubtasksNone gives nothing
)

// Config is a configuration from a file, the environment or flags. Zero fields are unset; lists that are empty but
// not nil mean none.
type Config struct {
	Source  Source       `json:"source,omitempty"  jsonschema:"where instructions come from; files"`
	Preset  chain.Preset `json:"preset,omitempty"  jsonschema:"the set of options to begin with; default"`
	Enabled *bool        `json:"enabled,omitempty" jsonschema:"false turns the plugin off"`

	Names         []string `json:"names,omitzero"          jsonschema:"candidates in a directory; the first regular file wins"`
	FallbackNames []string `json:"fallback_names,omitzero" jsonschema:"candidates after names, such as CLAUDE.md"`
	LocalNames    []string `json:"local_names,omitzero"    jsonschema:"the person's own files, read after the chosen one, from trusted roots only"`
	Markers       []string `json:"markers,omitzero"        jsonschema:"files or directories that make a directory the root of a source tree; none makes it the working directory"`
	Exclude       []string `json:"exclude,omitzero"        jsonschema:"globs of files and directories, relative to the root, that are treated as not there"`

	Root      string          `json:"root,omitempty"      jsonschema:"the root whatever the markers say; absolute or below ~/"`
	Allow     []string        `json:"allow,omitzero"      jsonschema:"directories that links may lead to, and that list the roots in them; absolute or below ~/"`
	Trust     chain.Trust     `json:"trust,omitempty"     jsonschema:"which roots' files are instructions; all"`
	Untrusted chain.Untrusted `json:"untrusted,omitempty" jsonschema:"what is shown of files of other roots; names"`

	Global  Global `json:"global,omitzero"   jsonschema:"the user's own file for all trees: true is the preset's place, false is none, a text is the path of a file"`
	Managed string `json:"managed,omitempty" jsonschema:"the operator's file, before all others; absolute or below ~/"`

	Budget    Budget   `json:"budget,omitzero"`
	Resolver  Resolver `json:"resolver,omitzero"`
	Imports   *bool    `json:"imports,omitempty"    jsonschema:"read the files that a text names, in the preset's way, else in whole lines @./path, @../path and @NAME.md; the preset's, or false"`
	ChildHint *bool    `json:"child_hint,omitempty" jsonschema:"add a text on how files of nested directories work; false"`
	Subtasks  Subtasks `json:"subtasks,omitempty"   jsonschema:"what the turns of sub-tasks get; inherit"`
	Watch     *bool    `json:"watch,omitempty"      jsonschema:"watch directories instead of reading them again; true"`

	SendAgain *bool `json:"send_again,omitempty" jsonschema:"also send what the agent, behind whose hooks the plugin works, reads by itself; false"`

	Codelia *Codelia `json:"codelia,omitempty" jsonschema:"the configuration of the tool codelia, for its preset"`
}

// Budget are limits; nil is unset.
type Budget struct {
	File  *int `json:"file,omitempty"  jsonschema:"bytes of one file"`
	Total *int `json:"total,omitempty" jsonschema:"bytes of the whole text; 0 turns it off"`
	Files *int `json:"files,omitempty" jsonschema:"how many files take part"`
	Floor *int `json:"floor,omitempty" jsonschema:"bytes kept of a file before a farther one gets any"`
}

// Resolver says how files of touched directories reach the model.
type Resolver struct {
	Enabled  *bool          `json:"enabled,omitempty"   jsonschema:"false is the delivery off"`
	Delivery chain.Delivery `json:"delivery,omitempty"`
	MaxFiles *int           `json:"max_files,omitempty" jsonschema:"files of one answer"`
	MaxFile  *int           `json:"max_file,omitempty"  jsonschema:"bytes of one body"`
	MaxEvent *int           `json:"max_event,omitempty" jsonschema:"bytes of all bodies of one answer"`
}

// Codelia is the configuration of the tool codelia, key by key.
type Codelia struct {
	Enabled *bool `json:"enabled,omitempty"`
	Root    struct {
		ProjectRootOverride *string  `json:"projectRootOverride,omitempty"`
		Markers             []string `json:"markers,omitzero"`
		StopAtFsRoot        *bool    `json:"stopAtFsRoot,omitempty"` // has no effect
	} `json:"root,omitzero"`
	Initial struct {
		MaxFiles *int `json:"maxFiles,omitempty"`
		MaxBytes *int `json:"maxBytes,omitempty"`
	} `json:"initial,omitzero"`
	Resolver struct {
		Enabled            *bool `json:"enabled,omitempty"`
		MaxFilesPerResolve *int  `json:"maxFilesPerResolve,omitempty"`
	} `json:"resolver,omitzero"`
}

// Global says where the user's global file is. In JSON it is true (the preset's place, the zero value), false (none),
// or the path of a file.
type Global struct {
	Off  bool
	Path string
}

// MarshalJSON implements json.Marshaler.
func (g Global) MarshalJSON() ([]byte, error) {
	if g.Path != "" {
		return json.Marshal(g.Path)
	}
	return json.Marshal(!g.Off)
}

// UnmarshalJSON implements json.Unmarshaler.
func (g *Global) UnmarshalJSON(data []byte) error {
	*g = Global{}
	var on *bool
	if json.Unmarshal(data, &on) == nil && on != nil {
		g.Off = !*on
		return nil
	}
	if json.Unmarshal(data, &g.Path) != nil || g.Path == "" {
		return sdk.ConfigErrorf("/global", "want true, false, or the path of a file")
	}
	return nil
}

func (c *Config) codelia() Codelia {
	if c.Codelia == nil {
		return Codelia{}
	}
	return *c.Codelia
}
