package skills

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
	"github.com/grapnelhq/grapnel/plugins/skills/skillset"
)

// Defaults of [Config].
const (
	defaultBodies = 3
	defaultChars  = 12_000
)

// Bounds of [Config].
const (
	maxConfigFolders = 16
	leastChars       = 500
)

// envHome is the variable behind "~/".
const envHome = "HOME"

// Config is the operator's configuration. The zero value is the default: a nil
// field is not said. Lists that are empty and not nil mean none.
type Config struct {
	// Folders are the folders that hold skills, in order; the first skill of a
	// slug wins. A relative one is looked for in the working folder and in each
	// folder above it up to the root of the source tree, nearest first; others are
	// absolute, or below "~/".
	Folders []string `json:"folders,omitempty"`
	// Markers are the names that make a folder the root of a source tree.
	Markers []string `json:"markers,omitempty"`
	// Include and Exclude are slugs, with "*" at the end as a wildcard. Nil
	// Include takes all; Exclude is stronger.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// MaxActiveBodies is how many skills whose paths match have their full text
	// in the prompt; 0 turns that off.
	MaxActiveBodies *int `json:"max_active_bodies,omitempty"`
	// MaxChars bounds the section.
	MaxChars *int `json:"max_chars,omitempty"`
}

// Settings is what a configuration comes to in an environment.
type Settings struct {
	// Options are for [skillset.Resolve].
	Options skillset.Options
	// MaxActiveBodies and MaxChars are as in [Config], with defaults.
	MaxActiveBodies, MaxChars int
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
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return mistake("/"+strings.ReplaceAll(wrong.Field, ".", "/"), "want %v, got %s", wrong.Type, wrong.Value)
	}
	return mistake("", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

func mistake(pointer, format string, args ...any) *phases.ConfigError {
	return &phases.ConfigError{Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// check finds the first mistake that is not one of types.
func (c *Config) check() error {
	if len(c.Folders) > maxConfigFolders {
		return mistake("/folders", "%d folders; at most %d are allowed", len(c.Folders), maxConfigFolders)
	}
	for i, folder := range c.Folders {
		pointer := "/folders/" + strconv.Itoa(i)
		if !isFolder(folder) {
			return mistake(pointer, "%q is neither a path below the working folder nor an absolute one, nor one below ~/", folder)
		}
		if slices.Contains(c.Folders[:i], folder) {
			return mistake(pointer, "%q is there twice", folder)
		}
	}
	for i, name := range c.Markers {
		if !filepath.IsLocal(name) || name == "." || filepath.Base(name) != name || strings.ContainsRune(name, 0) {
			return mistake("/markers/"+strconv.Itoa(i), "%q is not a plain file name", name)
		}
	}
	if err := checkSlugs("/include/", c.Include); err != nil {
		return err
	}
	if err := checkSlugs("/exclude/", c.Exclude); err != nil {
		return err
	}
	if n := c.MaxActiveBodies; n != nil && *n < 0 {
		return mistake("/max_active_bodies", "%d is less than 0", *n)
	}
	if n := c.MaxChars; n != nil && *n < leastChars {
		return mistake("/max_chars", "%d is less than %d", *n, leastChars)
	}
	return nil
}

// checkSlugs finds an entry that can be no slug, nor the beginning of one.
func checkSlugs(pointer string, slugs []string) error {
	for i, slug := range slugs {
		if stem, wild := strings.CutSuffix(slug, "*"); !skillset.ValidSlug(slug) && (!wild || !skillset.ValidSlug(stem+"x")) {
			return mistake(pointer+strconv.Itoa(i), "%q is not a skill's slug (a-z, 0-9 and hyphens), nor the beginning of one with * behind it", slug)
		}
	}
	return nil
}

// isFolder reports whether a path of the configuration says where it is.
func isFolder(path string) bool {
	if strings.ContainsRune(path, 0) {
		return false
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = rest
	} else if filepath.IsAbs(path) {
		return true
	}
	return filepath.IsLocal(path) && filepath.Clean(path) != "."
}

// Settings applies the configuration to the defaults. An error is a
// [*phases.ConfigError].
func (c *Config) Settings(getenv func(string) string) (Settings, error) {
	s := Settings{MaxActiveBodies: defaultBodies, MaxChars: defaultChars}
	s.Options = skillset.Options{Folders: defaultFolders(), Markers: []string{".git", ".jj", ".hg"}, Keep: c.keep}
	if home := getenv(envHome); filepath.IsAbs(home) {
		s.Options.Home = filepath.Clean(home)
	}
	if c.Markers != nil {
		s.Options.Markers = c.Markers
	}
	if c.Folders != nil {
		s.Options.Folders = slices.Clone(c.Folders)
		for i, folder := range s.Options.Folders {
			rest, below := strings.CutPrefix(folder, "~/")
			switch {
			case !below:
			case s.Options.Home == "":
				return Settings{}, mistake("/folders/"+strconv.Itoa(i), "%q needs the variable HOME: hand it on with env: {pass: [HOME]}", folder)
			default:
				s.Options.Folders[i] = filepath.Join(s.Options.Home, rest)
			}
		}
	}
	if c.MaxActiveBodies != nil {
		s.MaxActiveBodies = *c.MaxActiveBodies
	}
	if c.MaxChars != nil {
		s.MaxChars = *c.MaxChars
	}
	return s, nil
}

// defaultFolders are those of the project: the one that programs share, and the
// one in which most skills lie today. Nothing of the user's is read unasked.
func defaultFolders() []string { return []string{".agents/skills", ".claude/skills"} }

// keep reports whether the operator lets a skill take part.
func (c *Config) keep(slug string) bool {
	return (c.Include == nil || phases.Allows(c.Include, slug)) && !phases.Allows(c.Exclude, slug)
}
