package settings

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/suggest"
	"github.com/grapnelhq/grapnel/sdk"
)

// Parse decodes a configuration strictly and checks it. Errors are [*phases.ConfigError]. No data is the zero Config.
func Parse(data json.RawMessage) (Config, error) {
	var c Config
	if len(data) == 0 {
		return c, nil
	}
	if err := sdk.DecodeConfig(data, &c); err != nil {
		return Config{}, err
	}
	// The decoder accepts keys in another case, and the schema does not.
	s, err := parsedSchema()
	var value any
	if err == nil {
		err = sdk.DecodeConfig(data, &value)
	}
	if err == nil {
		err = checkObject(s, value, "/")
	}
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// checkObject checks the value at a pointer, which ends in a slash.
func checkObject(s *jsonschema.Schema, value any, pointer string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, key) {
			return sdk.ConfigErrorf(pointer+key, "unknown field %q%s", key, suggest.DidYouMean(key, known))
		}
		if err := checkObject(s.Properties[key], object[key], pointer+key+"/"); err != nil {
			return err
		}
	}
	return nil
}

// Check finds the first mistake that is not one of types, as a [*phases.ConfigError].
func (c *Config) Check() error {
	for _, check := range []func() error{c.checkWords, c.checkLists, c.checkPlaces} {
		if err := check(); err != nil {
			return err
		}
	}
	for _, n := range c.numbers() {
		if n.value != nil && *n.value < n.least {
			return sdk.ConfigErrorf(n.pointer, "%d is less than %d", *n.value, n.least)
		}
	}
	return nil
}

func (c *Config) checkWords() error {
	words := wordSchemas()
	for _, field := range []struct {
		pointer string
		value   any
	}{
		{"/source", c.Source},
		{"/preset", c.Preset},
		{"/trust", c.Trust},
		{"/untrusted", c.Untrusted},
		{"/subtasks", c.Subtasks},
		{"/resolver/delivery", c.Resolver.Delivery},
	} {
		got := reflect.ValueOf(field.value).String()
		var want []string
		for _, word := range words[reflect.TypeOf(field.value)].Enum {
			want = append(want, word.(string)) //nolint:forcetypeassert // AddWords adds strings
		}
		if got != "" && !slices.Contains(want, got) {
			return sdk.ConfigErrorf(field.pointer, "unknown word %q, want one of %s%s", got, strings.Join(want, ", "), suggest.DidYouMean(got, want))
		}
	}
	return nil
}

func (c *Config) checkLists() error {
	for _, list := range []struct {
		pointer string
		items   []string
		ok      func(string) bool
		want    string
	}{
		{"/names/", c.Names, chain.IsFilePath, "a plain file name or path"},
		{"/fallback_names/", c.FallbackNames, chain.IsFilePath, "a plain file name or path"},
		{"/local_names/", c.LocalNames, chain.IsFilePath, "a plain file name or path"},
		{"/markers/", c.Markers, chain.IsFileName, "a plain file name"},
		{"/exclude/", c.Exclude, chain.IsGlob, "a pattern of a path in the tree"},
		{"/allow/", c.Allow, isPlace, "an absolute path"},
		{"/codelia/root/markers/", c.codelia().Root.Markers, chain.IsFileName, "a plain file name"},
	} {
		for i, item := range list.items {
			if !list.ok(item) {
				return sdk.ConfigErrorf(list.pointer+strconv.Itoa(i), "%q is not %s", item, list.want)
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
			return sdk.ConfigErrorf(p.pointer, "%q is not an absolute path", p.path)
		}
	}
	return nil
}

// isPlace reports whether a path means the same wherever it is read.
func isPlace(path string) bool { return filepath.IsAbs(path) || strings.HasPrefix(path, "~/") }

type number struct {
	pointer string
	value   *int
	least   int
}

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

func wordSchemas() map[reflect.Type]*jsonschema.Schema {
	words := chain.WordSchemas()
	chain.AddWords(words, SourceFiles, SourceTree, SourceBoth)
	chain.AddWords(words, SubtasksInherit, SubtasksManagedOnly, SubtasksNone)
	return words
}

// schemaJSON is generated from [Config]; a test fails when it is stale and writes it with -update.
//
//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema of [Config]. The caller may keep and change the copy.
func Schema() json.RawMessage { return bytes.Clone(schemaJSON) }

//nolint:gochecknoglobals // read once, then immutable
var parsedSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	s := new(jsonschema.Schema)
	return s, json.Unmarshal(schemaJSON, s)
})
