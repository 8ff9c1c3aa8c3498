package settings

import (
	"bytes"
	"cmp"
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
	err := sdk.DecodeConfig(data, &c)
	if err == nil {
		err = c.check(data)
	}
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// Check finds the first mistake that is not one of types, as a [*phases.ConfigError].
func (c *Config) Check() error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return c.check(data)
}

// check checks a configuration, as JSON, by the schema, and what the schema does not say of texts.
func (c *Config) check(data json.RawMessage) error {
	if err := configschema.Check(schemaJSON, data); err != nil {
		return err
	}
	const name, place = "a plain file name or path", "an absolute path"
	codelia := c.codelia().Root
	for _, texts := range []struct {
		pointer string // of a list, if it ends in /
		items   []string
		ok      func(string) bool
		want    string
	}{
		{"/names/", c.Names, chain.IsFilePath, name},
		{"/fallback_names/", c.FallbackNames, chain.IsFilePath, name},
		{"/local_names/", c.LocalNames, chain.IsFilePath, name},
		{"/markers/", c.Markers, chain.IsFileName, "a plain file name"},
		{"/exclude/", c.Exclude, chain.IsGlob, "a pattern of a path in the tree"},
		{"/allow/", c.Allow, isPlace, place},
		{"/root", []string{c.Root}, isPlaceOrEmpty, place},
		{"/managed", []string{c.Managed}, isPlaceOrEmpty, place},
		{"/global", []string{c.Global.Path}, isPlaceOrEmpty, place},
		{"/codelia/root/markers/", codelia.Markers, chain.IsFileName, "a plain file name"},
		{"/codelia/root/projectRootOverride", []string{*cmp.Or(codelia.ProjectRootOverride, new(""))}, isPlaceOrEmpty, place},
	} {
		for i, item := range texts.items {
			if texts.ok(item) {
				continue
			}
			pointer := texts.pointer
			if strings.HasSuffix(pointer, "/") {
				pointer += strconv.Itoa(i)
			}
			return sdk.ConfigErrorf(pointer, "%q is not %s", item, texts.want)
		}
	}
	return nil
}

func isPlaceOrEmpty(path string) bool { return path == "" || isPlace(path) }

// isPlace reports whether a path means the same wherever it is read.
func isPlace(path string) bool { return filepath.IsAbs(path) || strings.HasPrefix(path, "~/") }

// schemaJSON is generated from [Config]; a test fails when it is stale and writes it with -update.
//
//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema of [Config]. The caller may keep and change the copy.
func Schema() json.RawMessage { return bytes.Clone(schemaJSON) }
