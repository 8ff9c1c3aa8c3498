package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// Parse decodes a configuration strictly and checks it. Errors are
// [*phases.ConfigError] and name the place. Without data it is the zero Config.
func Parse(data json.RawMessage) (Config, error) {
	var c Config
	if len(bytes.TrimSpace(data)) > 0 {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			return Config{}, decodeError(err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return Config{}, mistake("", "something follows the configuration")
		}
		if err := checkKeys(data); err != nil {
			return Config{}, err
		}
	}
	if err := c.Check(); err != nil {
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

// checkKeys refuses what the decoder takes for a key, in whatever case it is
// written, and the schema does not.
func checkKeys(data json.RawMessage) error {
	s, err := Schema()
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return decodeError(err)
	}
	return checkObject(s, value, "/")
}

// checkObject is checkKeys for the value at a pointer, which ends in a slash.
func checkObject(s *jsonschema.Schema, value any, pointer string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, key) {
			return mistake(pointer+key, "unknown field %q%s", key, phases.DidYouMean(key, known))
		}
		if err := checkObject(s.Properties[key], object[key], pointer+key+"/"); err != nil {
			return err
		}
	}
	return nil
}

func mistake(pointer, format string, args ...any) *phases.ConfigError {
	return &phases.ConfigError{Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// Check finds the first mistake that is not one of types: a word that is none,
// a name with a folder in it, a pattern that is none, a path that means another
// place elsewhere, a number that is too small. The error is a
// [*phases.ConfigError].
func (c *Config) Check() error {
	for _, check := range []func() error{c.checkWords, c.checkNames, c.checkPlaces, c.checkNumbers} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// word is a field that takes one of some words.
type word struct {
	pointer, got string
	words        []string
}

// vocabulary makes a word of a typed field.
func vocabulary[T ~string](pointer string, got T, words ...T) word {
	w := word{pointer: pointer, got: string(got)}
	for _, one := range words {
		w.words = append(w.words, string(one))
	}
	return w
}

// words are the fields that take words.
func (c *Config) words() []word {
	return []word{
		vocabulary("/source", c.Source, SourceFiles, SourceTree, SourceBoth),
		vocabulary("/preset", c.Preset, option.PresetDefault, option.PresetCodex, option.PresetCodelia),
		vocabulary("/trust", c.Trust, option.TrustAll, option.TrustListed, option.TrustNone),
		vocabulary("/untrusted", c.Untrusted, option.UntrustedNames, option.UntrustedText),
		vocabulary("/subtasks", c.Subtasks, SubtasksInherit, SubtasksManagedOnly, SubtasksNone),
		vocabulary("/resolver/delivery", c.Resolver.Delivery, option.DeliverBody, option.DeliverReminder, option.DeliverOff),
	}
}

func (c *Config) checkWords() error {
	for _, w := range c.words() {
		if w.got != "" && !slices.Contains(w.words, w.got) {
			return mistake(w.pointer, "unknown word %q, want one of %s%s", w.got, strings.Join(w.words, ", "), phases.DidYouMean(w.got, w.words))
		}
	}
	return nil
}

func (c *Config) checkNames() error {
	lists := []struct {
		pointer string
		names   []string
		ok      func(string) bool
		want    string
	}{
		{"/names/", c.Names, option.IsFileName, "a plain file name"},
		{"/fallback_names/", c.FallbackNames, option.IsFileName, "a plain file name"},
		{"/local_names/", c.LocalNames, option.IsFileName, "a plain file name"},
		{"/markers/", c.Markers, option.IsFileName, "a plain file name"},
		{"/exclude/", c.Exclude, option.IsGlob, "a pattern of a path in the tree"},
		{"/allow/", c.Allow, isPlace, "an absolute path"},
		{"/codelia/root/markers/", c.codelia().Root.Markers, option.IsFileName, "a plain file name"},
	}
	for _, l := range lists {
		for i, name := range l.names {
			if !l.ok(name) {
				return mistake(l.pointer+strconv.Itoa(i), "%q is not %s", name, l.want)
			}
		}
	}
	return nil
}

func (c *Config) checkPlaces() error {
	override := ""
	if path := c.codelia().Root.ProjectRootOverride; path != nil {
		override = *path
	}
	for _, p := range []struct{ pointer, path string }{
		{"/root", c.Root}, {"/managed", c.Managed}, {"/global", c.Global.Path}, {"/codelia/root/projectRootOverride", override},
	} {
		if p.path != "" && !isPlace(p.path) {
			return mistake(p.pointer, "%q is not an absolute path", p.path)
		}
	}
	return nil
}

// number is a field that takes a number.
type number struct {
	pointer string
	value   *int
	least   int
}

// numbers are the fields that take numbers.
func (c *Config) numbers() []number {
	tool := c.codelia()
	return []number{
		{"/budget/file", c.Budget.File, 1},
		{"/budget/total", c.Budget.Total, 0},
		{"/budget/files", c.Budget.Files, 1},
		{"/budget/floor", c.Budget.Floor, 1},
		{"/resolver/max_files", c.Resolver.MaxFiles, 1},
		{"/resolver/max_file", c.Resolver.MaxFile, 1},
		{"/resolver/max_event", c.Resolver.MaxEvent, 1},
		{"/codelia/initial/maxFiles", tool.Initial.MaxFiles, 1},
		{"/codelia/initial/maxBytes", tool.Initial.MaxBytes, 1},
		{"/codelia/resolver/maxFilesPerResolve", tool.Resolver.MaxFilesPerResolve, 1},
	}
}

func (c *Config) checkNumbers() error {
	for _, n := range c.numbers() {
		if n.value != nil && *n.value < n.least {
			return mistake(n.pointer, "%d is less than %d", *n.value, n.least)
		}
	}
	return nil
}

// codelia is the block, empty where there is none.
func (c *Config) codelia() Codelia {
	if c.Codelia == nil {
		return Codelia{}
	}
	return *c.Codelia
}

// isPlace reports whether a path means the same wherever it is read.
func isPlace(path string) bool { return filepath.IsAbs(path) || strings.HasPrefix(path, "~/") }
