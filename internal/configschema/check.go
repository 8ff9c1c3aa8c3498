// Package configschema checks a plugin's configuration against the JSON Schema that the plugin brings. It finds the
// place of a mistake, and refuses schemas whose check would not end, or would take too much memory.
//
// Stability: internal.
package configschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// Check checks a plugin's configuration against its own schema. Without a schema only an
// absent or empty one is accepted. A mistake in the configuration is a
// *phases.ConfigError with its place; any other error is about the schema.
func Check(schema, cfg json.RawMessage) error {
	var value any = map[string]any{}
	if len(cfg) > 0 {
		if err := json.Unmarshal(cfg, &value); err != nil {
			return &phases.ConfigError{Message: err.Error()}
		}
	}
	if len(schema) == 0 {
		if fields, ok := value.(map[string]any); !ok || len(fields) > 0 {
			return &phases.ConfigError{Message: "the plugin takes no configuration"}
		}
		return nil
	}
	resolved, err := resolve(schema)
	if err != nil {
		return fmt.Errorf("config_schema: %w", err)
	}
	if err := resolved.Validate(value); err != nil {
		return Locate(resolved, value, err)
	}
	return nil
}

func resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	if err := checkSchemaSize(schema); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	if err := checkSchemaWork(&s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// schemaStep is one step of the path in the schema that begins the validator's errors:
// "validating /properties/hooks: validating /properties/hooks/items: …".
var schemaStep = lazyregexp.New(`^validating (\S+): `)

// Locate makes a validation error a *phases.ConfigError with the place of the value. The schema's path has names of
// members; the item of a list, or a member with any name, is found by validating the value with one of them at a time.
func Locate(schema *jsonschema.Resolved, value any, err error) error {
	message, pointer, at, where := err.Error(), "", value, ""
	for steps := 0; ; steps++ {
		step := schemaStep().FindStringSubmatch(message)
		if step == nil {
			break
		}
		message, where = message[len(step[0]):], step[1]
		parent, name := path.Split(where)
		switch fields, isObject := at.(map[string]any); {
		case name == "items":
			i := failingItem(schema, value, pointer, at)
			if list, ok := at.([]any); ok && i < len(list) {
				pointer, at = pointer+"/"+strconv.Itoa(i), list[i]
			}
		case name == "additionalProperties" && isObject:
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				if one := schema.Validate(replaced(value, strings.Split(pointer, "/")[1:], map[string]any{name: fields[name]})); one != nil {
					pointer, at, message = pointer+"/"+escapePointer(name), fields[name], one.Error()
					for range steps + 1 {
						message = message[len(schemaStep().FindString(message)):]
					}
					break
				}
			}
		case strings.HasSuffix(parent, "/properties/"):
			if child, there := fields[name]; isObject && there {
				pointer, at = pointer+"/"+escapePointer(name), child
			}
		}
	}
	message, key := plain(message, at, part(schema.Schema(), where))
	if key != "" {
		pointer += "/" + escapePointer(key)
	}
	return &phases.ConfigError{Pointer: pointer, Message: message}
}

//nolint:gochecknoglobals // immutable
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(name string) string { return pointerEscapes.Replace(name) }

func failingItem(schema *jsonschema.Resolved, value any, pointer string, at any) int {
	list, _ := at.([]any)
	for i := range list {
		if schema.Validate(replaced(value, strings.Split(pointer, "/")[1:], list[i:i+1])) != nil {
			return i
		}
	}
	return 0
}

// replaced returns a copy of value in which the place that path leads to holds
// other; it copies only what lies on the way.
func replaced(value any, path []string, other any) any {
	if len(path) == 0 {
		return other
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		maps.Copy(out, v)
		out[name] = replaced(v[name], path[1:], other)
		return out
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i >= len(v) {
			return v
		}
		// Without the other items, which may fail too.
		return []any{replaced(v[i], path[1:], other)}
	}
	return value
}
