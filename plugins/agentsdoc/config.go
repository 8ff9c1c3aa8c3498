package agentsdoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Config is the operator's configuration. The zero value is the default: a nil
// field is not said. Lists that are empty and not nil mean none.
type Config struct {
	// Source says where instructions come from; "files" in this version.
	Source string `json:"source,omitempty"`
	// Preset names a set of options; "default" in this version.
	Preset string `json:"preset,omitempty"`
	// Enabled false turns the hook off.
	Enabled *bool `json:"enabled,omitempty"`
	// Names are the candidates in a folder, the first regular file wins;
	// FallbackNames are tried after them.
	Names         []string `json:"names,omitempty"`
	FallbackNames []string `json:"fallback_names,omitempty"`
	// Markers are the names that make a folder the root of a source tree.
	Markers []string `json:"markers,omitempty"`
	// Root is the root whatever the markers say: absolute, or below "~/".
	Root string `json:"root,omitempty"`
	// Global is the file that applies to all trees of the user.
	Global Global `json:"global,omitzero"`
	// Budget bounds the text.
	Budget Budget `json:"budget,omitzero"`
}

// Budget are the limits that the operator sets. Nil means the default.
type Budget struct {
	// File bounds the bytes of one file, Total those of the whole text (0 turns
	// it off), Files how many files take part. Floor is how much of each file is
	// kept before a farther one gets any.
	File  *int `json:"file,omitempty"`
	Total *int `json:"total,omitempty"`
	Files *int `json:"files,omitempty"`
	Floor *int `json:"floor,omitempty"`
}

// Global says where the user's global file is. In JSON it is true (the default:
// AGENTS.override.md or AGENTS.md in the user's folder of configuration), false
// (none), or the path of a file, absolute or below "~/".
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
	var on bool
	if json.Unmarshal(data, &on) == nil {
		g.Off = !on
		return nil
	}
	if json.Unmarshal(data, &g.Path) != nil || g.Path == "" {
		return &phases.ConfigError{Pointer: "/global", Message: "want true, false, or the path of a file"}
	}
	return nil
}

// ParseConfig decodes a configuration strictly and checks it. Errors are
// [*phases.ConfigError]. Without data it is the zero Config.
func ParseConfig(data json.RawMessage) (Config, error) {
	var c Config
	if len(bytes.TrimSpace(data)) > 0 {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			return Config{}, decodeError(err)
		}
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// decodeError finds the place of a mistake that the decoder met.
func decodeError(err error) error {
	if config, ok := errors.AsType[*phases.ConfigError](err); ok {
		return config
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		pointer := "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		return mistake(pointer, "want %v, got %s", wrong.Type, wrong.Value)
	}
	return mistake("", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

func mistake(pointer, format string, args ...any) *phases.ConfigError {
	return &phases.ConfigError{Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// check finds the first mistake that is not one of types.
func (c *Config) check() error {
	if err := only("source", c.Source, "files", "tree", "both"); err != nil {
		return err
	}
	if err := only("preset", c.Preset, "default", "codex", "codelia"); err != nil {
		return err
	}
	for _, l := range []struct {
		pointer string
		names   []string
	}{{"/names/", c.Names}, {"/fallback_names/", c.FallbackNames}, {"/markers/", c.Markers}} {
		for i, name := range l.names {
			if !isFileName(name) {
				return mistake(l.pointer+strconv.Itoa(i), "%q is not a plain file name", name)
			}
		}
	}
	if c.Root != "" && !isPlace(c.Root) {
		return mistake("/root", "%q is not an absolute path", c.Root)
	}
	if c.Global.Path != "" && !isPlace(c.Global.Path) {
		return mistake("/global", "%q is not an absolute path", c.Global.Path)
	}
	return c.Budget.check()
}

// only accepts nothing or the first of the words. The others are words too, and
// of other versions.
func only(field, got, word string, others ...string) error {
	if got == "" || got == word {
		return nil
	}
	if slices.Contains(others, got) {
		return mistake("/"+field, "%q is not available in this version of the plugin, only %q is", got, word)
	}
	return mistake("/"+field, "unknown %s %q%s", field, got, phases.DidYouMean(got, append(others, word)))
}

func (b *Budget) check() error {
	for _, n := range []struct {
		pointer string
		value   *int
		least   int
	}{{"/budget/file", b.File, 1}, {"/budget/total", b.Total, 0}, {"/budget/files", b.Files, 1}, {"/budget/floor", b.Floor, 1}} {
		if n.value != nil && *n.value < n.least {
			return mistake(n.pointer, "%d is less than %d", *n.value, n.least)
		}
	}
	return nil
}

// enabled is true unless the operator says otherwise.
func (c *Config) enabled() bool { return c.Enabled == nil || *c.Enabled }

// isFileName reports whether a name is one plain element of a path.
func isFileName(name string) bool {
	return filepath.IsLocal(name) && name != "." && filepath.Base(name) == name && !strings.ContainsRune(name, 0)
}

// isPlace reports whether a path means the same wherever it is read.
func isPlace(path string) bool { return filepath.IsAbs(path) || strings.HasPrefix(path, "~/") }
