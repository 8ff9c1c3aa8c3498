package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// sqlitePrefix begins the DSN of a SQLite file.
const sqlitePrefix = "sqlite:"

// The variables of the environment behind the default place and "~/".
const (
	envData = "XDG_DATA_HOME"
	envHome = "HOME"
)

// Reader says who reads what a user wrote. The empty one counts as ReaderAuto.
type Reader string

// The readers.
const (
	// ReaderRules are the rules of package turnpolicy alone.
	ReaderRules Reader = "rules"
	// ReaderModel is a model, with the rules as its fallback.
	ReaderModel Reader = "model"
	// ReaderAuto is the rules, with a model for wishes of which they are unsure, and a
	// model for facts; the rules alone where the host grants none.
	ReaderAuto Reader = "auto"
)

// readers returns the readers.
func readers() []Reader { return []Reader{ReaderRules, ReaderModel, ReaderAuto} }

// Config is the operator's configuration. The zero value is the default.
type Config struct {
	// DSN is where memories are kept: "sqlite:PATH", the path absolute or below "~/",
	// or the URL of a PostgreSQL database. Empty is a file in the plugin's data folder.
	DSN string `json:"dsn,omitempty"`
	// DefaultPolicy is for turns in which the user wishes nothing.
	DefaultPolicy turnpolicy.Default `json:"default_policy,omitempty"`
	// Classifier reads the user's wishes, Extraction the facts.
	Classifier Reader `json:"classifier,omitempty"`
	Extraction Reader `json:"extraction,omitempty"`
	// UserScopeEverywhere lets a user's own memories be recalled in all workspaces.
	UserScopeEverywhere bool `json:"user_scope_everywhere,omitempty"`
}

// Settings is what a configuration comes to in an environment.
type Settings struct {
	// DSN is complete: for [itemstore.Open].
	DSN                    string
	Default                turnpolicy.Default
	Classifier, Extraction Reader
	UserScopeEverywhere    bool
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
		return mistake("/"+strings.ReplaceAll(wrong.Field, ".", "/"), "want %v, got %s", wrong.Type.Kind(), wrong.Value)
	}
	return mistake("", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

func mistake(pointer, format string, args ...any) *phases.ConfigError {
	return &phases.ConfigError{Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// check finds the first mistake that is not one of types.
func (c *Config) check() error {
	if _, err := turnpolicy.ParseDefault(string(c.DefaultPolicy)); err != nil {
		return mistake("/default_policy", "%s", strings.TrimPrefix(err.Error(), "default_policy: "))
	}
	for _, r := range []struct {
		pointer string
		reader  Reader
	}{{"/classifier", c.Classifier}, {"/extraction", c.Extraction}} {
		if r.reader != "" && !slices.Contains(readers(), r.reader) {
			return mistake(r.pointer, "%q is none of %q", r.reader, readers())
		}
	}
	path, file := strings.CutPrefix(c.DSN, sqlitePrefix)
	switch {
	case strings.ContainsRune(c.DSN, 0):
		return mistake("/dsn", "there is a NUL in it")
	case file && !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/"):
		// A plugin has a working folder of its own, which nobody means.
		return mistake("/dsn", "the path of %q is neither absolute nor below ~/", c.DSN)
	}
	return nil
}

// Settings applies the configuration to the defaults. Getenv is asked for
// XDG_DATA_HOME and HOME where no DSN, or one below "~/", is configured. An error is a
// [*phases.ConfigError].
func (c *Config) Settings(getenv func(string) string) (Settings, error) {
	s := Settings{Default: c.DefaultPolicy, Classifier: c.Classifier, Extraction: c.Extraction, UserScopeEverywhere: c.UserScopeEverywhere}
	for _, r := range []*Reader{&s.Classifier, &s.Extraction} {
		if *r == "" {
			*r = ReaderAuto
		}
	}
	if s.Default == "" {
		s.Default = turnpolicy.DefaultAllow
	}
	var err error
	s.DSN, err = c.dsn(getenv)
	return s, err
}

// dsn is the complete DSN.
func (c *Config) dsn(getenv func(string) string) (string, error) {
	path, file := strings.CutPrefix(c.DSN, sqlitePrefix)
	below, tilde := strings.CutPrefix(path, "~/")
	switch {
	case c.DSN != "" && (!file || !tilde):
		return c.DSN, nil
	case c.DSN == "" && filepath.IsAbs(getenv(envData)):
		return sqlitePrefix + filepath.Join(getenv(envData), "grapnel", "plugins", "memory", "memory.db"), nil
	case !filepath.IsAbs(getenv(envHome)):
		return "", mistake("/dsn", "where memories are kept is not known: set dsn, or hand HOME on with env: {pass: [HOME, XDG_DATA_HOME]}")
	case c.DSN == "":
		below = filepath.Join(".local", "share", "grapnel", "plugins", "memory", "memory.db")
	}
	return sqlitePrefix + filepath.Join(getenv(envHome), below), nil
}
