package settings

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/configschema"
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
	err := configschema.Check(schemaJSON, data)
	if err == nil {
		err = c.checkTexts()
	}
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// Check finds the first mistake that is not one of types, as a [*phases.ConfigError].
func (c *Config) Check() error {
	data, err := json.Marshal(c)
	if err == nil {
		err = configschema.Check(schemaJSON, data)
	}
	if err == nil {
		err = c.checkTexts()
	}
	return err
}

// checkTexts checks what the schema does not say of texts.
func (c *Config) checkTexts() error {
	if err := c.checkLists(); err != nil {
		return err
	}
	return c.checkPlaces()
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

// schemaJSON is generated from [Config]; a test fails when it is stale and writes it with -update.
//
//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema of [Config]. The caller may keep and change the copy.
func Schema() json.RawMessage { return bytes.Clone(schemaJSON) }
